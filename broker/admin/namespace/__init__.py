"""Tenants and namespaces over REST, beside their policies."""
