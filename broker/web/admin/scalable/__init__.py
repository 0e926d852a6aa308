"""Scalable topics over REST: their segments, subscriptions, statistics and auto scale policies."""
