"""Scalable topics and their segments over REST."""
