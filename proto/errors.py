"""What can be wrong with bytes and names from outside.

All derive from `ProtocolError`; `args[0]` is a text fit for a log line or, for `InvalidTopicName`, for a reply.
"""

from __future__ import annotations


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
