"""Transactions (PIP-31): their coordinators, and the messages and acknowledgements that belong to a transaction."""
