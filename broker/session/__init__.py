"""One client connection: bytes in, commands handled, bytes out."""
