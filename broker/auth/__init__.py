"""Who may do what: credentials, roles, grants."""
