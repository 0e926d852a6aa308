"""How a broker.conf key is declared (default, meaning, what it takes), and what is wrong with a setting."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Meaning(NamedTuple):
    """What a key means and takes. `unit` is "" for counts and texts; `low` and `high` bound numbers, both included.

    The value of a `secret` key is shown nowhere. `without_effect` says why a key that is taken changes nothing.
    """

    doc: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    one_of: tuple[str, ...] = ()
    secret: bool = False
    without_effect: str = ""


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
) -> T:
    """A field of Config: its default and its Meaning."""
    meaning = Meaning(
        doc=doc, unit=unit, low=low, high=high, one_of=one_of, secret=secret, without_effect=without_effect
    )
    made: T = field(default=default, metadata={"meaning": meaning}, repr=not secret)
    return made


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
