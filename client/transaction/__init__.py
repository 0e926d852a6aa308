"""Transactions (PIP-31): their coordinators, and what is sent and acknowledged in one."""
