"""Log events of the broker: one line an event, with its facts as key=value. Never called per message.

    log = Log("session")
    log.info("connection opened", peer=peer, client=client_version, protocol=21)

On a busy path, check `if log.debug_enabled:` before building a line.
"""

from __future__ import annotations

import json
import logging
from typing import Final

_SECRET_WORDS: Final = ("password", "secret", "token", "credential", "auth_data", "authorization", "private_key")
_LONGEST_VALUE: Final = 300  # bounds names and versions, which clients choose


class LogEvent:
    """A message with its facts. str() is the text line, so any handler of logging prints all of it."""

    __slots__ = ("facts", "message")

    def __init__(self, message: str, facts: dict[str, object]) -> None:
        self.message = message
        self.facts = facts

    def __str__(self) -> str:
        known = self.plain_facts().items()
        return " ".join([self.message, *(f"{name}={_quoted(value)}" for name, value in known if value is not None)])

    def plain_facts(self) -> dict[str, str | int | float | bool | None]:
        """Return the facts for JSON: secrets and bytes hidden, long texts cut."""
        return {name: _plain(name, value) for name, value in self.facts.items()}


class PartLog:
    """The log of one part of the broker, on top of `logging.getLogger("pulsarium.<name>")`."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"pulsarium.{name}")

    @property
    def debug_enabled(self) -> bool:
        return self._logger.isEnabledFor(logging.DEBUG)

    def debug(self, message: str, /, **facts: object) -> None:
        self._write(logging.DEBUG, message, facts)

    def info(self, message: str, /, **facts: object) -> None:
        self._write(logging.INFO, message, facts)

    def warning(self, message: str, /, **facts: object) -> None:
        self._write(logging.WARNING, message, facts)

    def error(self, message: str, /, exception: BaseException | None = None, **facts: object) -> None:
        """Log an error, with the traceback of `exception` if given."""
        self._write(logging.ERROR, message, facts, exception)

    def _write(
        self, level: int, message: str, facts: dict[str, object], exception: BaseException | None = None
    ) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, LogEvent(message, facts), exc_info=exception)


def _plain(name: str, value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool | int | float):
        return value
    if any(word in name.lower() for word in _SECRET_WORDS):
        return "***"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}...({len(text)} characters)"


def _quoted(value: str | float | bool) -> str:
    """Return a plain word as it is, other text in quotes, so that no client's name can forge a line or a fact."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text and all(letter.isprintable() and letter not in ' "=' for letter in text):
        return text
    return json.dumps(text)
