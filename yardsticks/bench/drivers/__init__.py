"""Drivers of the table's programs, on bare sockets and on clients."""
