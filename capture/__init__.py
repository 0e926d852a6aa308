"""Wire captures, without I/O: their files, their comparison, and the linter of their frames."""
