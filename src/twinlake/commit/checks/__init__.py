"""What a commit must fulfil before it is written: the registry of checks, and what they ask."""
