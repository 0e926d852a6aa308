"""Publishing: batches, what has no receipt yet, and which partition gets a message."""
