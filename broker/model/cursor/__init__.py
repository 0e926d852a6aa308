"""Cursors: the acknowledgements of subscriptions in managed ledgers."""
