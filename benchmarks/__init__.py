"""Side by side with the peers: ``python -m benchmarks`` (or ``make bench``)."""
