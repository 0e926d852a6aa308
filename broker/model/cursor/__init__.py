"""Cursors: what a subscription has consumed of a managed ledger."""
