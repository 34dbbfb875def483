"""Reading tables: which files a scan needs, and the frame over them."""
