"""Declare broker.conf keys with default and meaning, and report settings that cannot be used."""

from __future__ import annotations

from dataclasses import field
from typing import Final, NamedTuple, TypeVar

from pulsarium.proto.numbers import INT_MAX

T = TypeVar("T")
JAVA_INT: Final = (-INT_MAX - 1, INT_MAX)


class Meaning(NamedTuple):
    """The meaning and the accepted values of a key.

    `unit` is "" for counts and texts; `low` and `high` bound numbers, both included. The value of a `secret` key is
    shown nowhere. `without_effect` says why an accepted key changes nothing. `proposal` is the number of the proposal
    that the key belongs to, or 0.
    """

    doc: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    one_of: tuple[str, ...] = ()
    secret: bool = False
    without_effect: str = ""
    proposal: int = 0


def key(
    default: T,
    doc: str,
    unit: str = "",
    *,
    low: int | None = None,
    high: int | None = None,
    one_of: tuple[str, ...] = (),
    secret: bool = False,
    without_effect: str = "",
    proposal: int = 0,
) -> T:
    """Declare a field of Config: its default and its `Meaning`."""
    meaning = Meaning(doc, unit, low, high, one_of, secret, without_effect, proposal)
    made: T = field(default=default, metadata={"meaning": meaning}, repr=not secret)
    return made


class ConfigError(Exception):
    """Error for a configuration that cannot be used.

    where: the file and line, or the option, that holds the value ("broker.conf:12", "--set"); "" when there is none.
    key: the broker.conf key, or "" when the file itself cannot be read.
    reason: what is wrong, and what is accepted.
    """

    def __init__(self, where: str, key: str, reason: str) -> None:
        super().__init__(": ".join(part for part in (where, key, reason) if part))
        self.where = where
        self.key = key
        self.reason = reason
