"""Serve HTTP: requests, answers, declaration of routes, credentials, permission, owner and errors."""
