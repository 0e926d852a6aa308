"""How a compacted entry is written: as Pulsar does, or in another format, as PIP-429 allows."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from pulsarium.proto import compacted_values

PULSAR, VALUES = "pulsar", "values"


class Format(Protocol):
    """A module, or an object of one, that turns entries of Pulsar's format to its own and back.

    Both are called with any entry, and leave what is not theirs as it is.
    """

    def to_values(self, entry: bytes) -> bytes:
        """An entry that compaction wrote, in this format."""
        ...

    def to_batch(self, entry: bytes) -> bytes:
        """It in Pulsar's format again, for the next compaction."""
        ...


def format_of(name: str) -> Format | None:
    """By its name: `pulsar` (None: nothing to convert), `values`, or `module` or `module:object`.

    ValueError when there is no such format.
    """
    if name == PULSAR:
        return None
    if name == VALUES:
        return cast(Format, compacted_values)
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
        made = getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        raise ValueError(f"format is {PULSAR}, {VALUES} or module:object, not {name}: {error}") from error
    if not (hasattr(made, "to_values") and hasattr(made, "to_batch")):
        raise ValueError(f"format {name} has no to_values and to_batch")
    return cast(Format, made)
