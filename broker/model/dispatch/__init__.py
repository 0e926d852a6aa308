"""Dispatchers: who gets which entry of a subscription, and when."""
