"""What one fresh process does for one side; nothing here imports a side before it is asked to."""
