"""The recorded calls of the admin API, made again."""
