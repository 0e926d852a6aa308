"""Transactions: their coordinators, what they published and is not visible yet, what they acknowledged."""
