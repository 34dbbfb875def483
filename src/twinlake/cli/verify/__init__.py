"""What `twinlake verify` shows and how: parameters, configurations, reports, pages."""
