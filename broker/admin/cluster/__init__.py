"""Clusters and brokers over REST, and what is kept of them."""
