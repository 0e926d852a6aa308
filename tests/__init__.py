"""The tests, a package so that they can share code as `tests.<folder>.<module>`."""
