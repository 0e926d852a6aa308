"""Where entries and metadata are kept: in memory, or in one SQLite file of a data directory."""
