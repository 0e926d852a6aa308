"""What can be wrong with bytes and names from outside, and what to do where a library of an extra is missing.

Errors of the wire derive from `ProtocolError`; `args[0]` is a text fit for a log line or, for `InvalidTopicName`, for a
reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class ProtocolError(ValueError):
    """Something received does not follow the protocol."""


class FrameError(ProtocolError):
    """A frame's lengths make no sense, or it is too big: nothing after it can be read, the connection is lost."""


class CommandError(ProtocolError):
    """A frame's command is unknown, incomplete, or not a BaseCommand at all."""


class EntryError(ProtocolError):
    """The headers or the metadata of an entry cannot be read."""


class BatchError(ProtocolError):
    """A payload is not the batch its metadata promises."""


class CompressionError(ProtocolError):
    """A payload does not decompress, or not to the size its metadata promises."""


class AvroError(ProtocolError):
    """Bytes that are no value of their Avro schema, or a value that is none."""


class EncryptionError(ProtocolError):
    """A message cannot be encrypted or decrypted: a key is missing, is the wrong one, or is of a kind nobody uses."""


class InvalidMessageId(ProtocolError):
    """A text or bytes that should name a message do not."""


class InvalidTopicName(ProtocolError):
    """A topic or namespace name Pulsar refuses; `args[0]` is Pulsar's own text."""


class MissingExtra(ImportError):
    """A library is not installed; the text says how to get it."""

    def __init__(self, what: str, extra: str, module: str | None) -> None:
        super().__init__(f'{what} needs {module}; install it with: pip install "pulsarium[{extra}]"', name=module)


def look_for(what: str, extra: str, *modules: str) -> None:
    """Raise MissingExtra unless all modules are there; none of them is imported."""
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(what, extra, module)


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Have the imports of `what` stand inside: where one fails, MissingExtra names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(what, extra, error.name) from None
