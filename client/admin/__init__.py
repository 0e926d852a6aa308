"""The admin client: calls of the brokers' REST API."""
