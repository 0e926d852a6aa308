"""What is wrong with a setting, in one line that names the setting."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration that cannot be used.

    where: the file and line, or the option, that holds the value ("broker.conf:12", "--set"); "" when there is none.
    key: the broker.conf key, or "" when the file itself cannot be read.
    reason: what is wrong and what is accepted.
    """

    def __init__(self, where: str, key: str, reason: str) -> None:
        super().__init__(": ".join(part for part in (where, key, reason) if part))
        self.where = where
        self.key = key
        self.reason = reason
