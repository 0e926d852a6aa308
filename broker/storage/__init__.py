"""Store entries and metadata, in memory or in a SQLite file of a data directory."""
