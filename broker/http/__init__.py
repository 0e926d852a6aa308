"""What all routes have in common: requests, answers, declaration, credentials, permission, owner, errors."""
