"""Reading topics: where to begin and end, how that is split, and the reading of a split."""
