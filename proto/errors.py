"""Errors of the protocol, and the error for a missing library of an extra.

Errors of the wire derive from `ProtocolError`. `args[0]` is a text for the log; that of `InvalidTopicName` is a text
for the reply too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class ProtocolError(ValueError):
    """Base of all violations of the protocol."""


class FrameError(ProtocolError):
    """A frame is too large or has impossible lengths. The connection cannot continue."""


class CommandError(ProtocolError):
    """A frame's command is unknown, incomplete, or not a BaseCommand at all."""


class EntryError(ProtocolError):
    """The headers or the metadata of an entry cannot be read."""


class BatchError(ProtocolError):
    """A payload is not the batch its metadata promises."""


class CompressionError(ProtocolError):
    """A payload does not decompress, or not to the size its metadata promises."""


class AvroError(ProtocolError):
    """Bytes or a value do not fit their Avro schema, or the schema is invalid."""


class Misfit(AvroError):
    """A value does not fit its schema. The text begins with the place: `customer.address[2].zip: expected a string`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path: list[str | int] = []

    def inside(self, key: str | int) -> Misfit:
        """Add an outer field, key or index to the place, and return the error."""
        self.path.insert(0, key)
        return self

    @property
    def at(self) -> str:
        """Return the place of the value, "" for the whole."""
        found = ""
        for key in self.path:
            if isinstance(key, int):
                found += f"[{key}]"
            elif not key.isidentifier():
                found += f'["{key}"]'
            else:
                found += f".{key}" if found else key
        return found

    def __str__(self) -> str:
        return f"{self.at}: {self.args[0]}" if self.path else str(self.args[0])


class EncryptionError(ProtocolError):
    """A message cannot be encrypted or decrypted: a key is missing, wrong, or of an unsupported kind."""


class InvalidMessageId(ProtocolError):
    """A text or bytes are no message id."""


class InvalidTopicName(ProtocolError):
    """Pulsar refuses the name of a topic or namespace. `args[0]` is Pulsar's own text."""


class MissingExtra(ImportError):
    """A library is not installed. The text says how to install it."""

    def __init__(self, what: str, extra: str, module: str | None) -> None:
        from pulsarium.proto.installing import remedy  # imported only when something is missing

        super().__init__(f"{what} needs {module}; {remedy(extra)}", name=module)


def look_for(what: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtra` when a module is not installed. Import none."""
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(what, extra, module)


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Turn the failure of an import inside the block into `MissingExtra`, which names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(what, extra, error.name) from None
