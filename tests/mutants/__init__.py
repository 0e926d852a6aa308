"""Mutants: small changes that break something on purpose, and whether the everyday tests notice."""
