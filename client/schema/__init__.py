"""Convert values of the application to bytes and back, and declare their schema to the broker."""
