"""The statements that do something or show something, one module a family."""
