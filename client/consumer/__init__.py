"""Consumers, and the readers that are made from them."""
