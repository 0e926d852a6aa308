"""Receiving: consumers and the readers that stand on them."""
