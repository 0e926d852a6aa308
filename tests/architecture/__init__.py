"""The rules of the layout, read from the files themselves."""
