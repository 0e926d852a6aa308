"""The results of a run as files."""
