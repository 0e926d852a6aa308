"""Our client beside the official one, on one broker."""
