"""Clusters and brokers over REST, and stored facts about them."""
