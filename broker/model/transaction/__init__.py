"""Transactions: their coordinators, and the buffers of topics that hold their messages."""
