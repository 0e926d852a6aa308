"""Programs of the Python clients."""
