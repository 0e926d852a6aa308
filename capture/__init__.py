"""Wire captures, sans-IO: their files, their comparison, and the linter of what they hold."""
