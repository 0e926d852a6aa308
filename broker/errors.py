"""Errors that keep a broker from starting."""

from __future__ import annotations


class PortInUse(Exception):
    """Another process listens on the port. `option` is the command-line option for another port."""

    def __init__(self, port: int, option: str) -> None:
        super().__init__(f"port {port} is in use; choose another with {option} N, or {option} 0 for a free one")
        self.port = port
        self.option = option
