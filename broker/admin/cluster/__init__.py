"""What REST keeps of a cluster beside its addresses."""
