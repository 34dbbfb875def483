"""From a user's frame to the rows a table takes: columns, types, rules, identity values."""
