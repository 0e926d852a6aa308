"""Serve the admin REST API, with one module per resource, from the same model as the binary protocol."""
