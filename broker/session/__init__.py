"""A client connection: bytes come in, commands are handled, bytes go out."""
