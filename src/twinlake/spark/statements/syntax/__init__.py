"""How a statement is read: tokens, Delta's own grammar over them, and Spark's parsed trees."""
