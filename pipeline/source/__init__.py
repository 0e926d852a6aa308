"""Read topics: where to begin and end, how to split the range, and how to read a split."""
