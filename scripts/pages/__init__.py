"""Generate pages of docs/ from the code."""
