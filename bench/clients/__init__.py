"""Compare our client with the official one, on one broker."""
