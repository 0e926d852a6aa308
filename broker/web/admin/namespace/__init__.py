"""Tenants and namespaces over REST, without policies."""
