"""kill -9 again and again, under load, on one data directory: what the broker confirmed is there afterwards, once."""
