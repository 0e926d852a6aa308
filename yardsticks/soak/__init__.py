"""Mixed load that comes and goes, with an account of every message."""
