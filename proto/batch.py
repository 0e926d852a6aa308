"""Pack and unpack a batch: the payload of an entry whose metadata has num_messages_in_batch.

A batch is a sequence of `[u32 size][SingleMessageMetadata][message: payload_size bytes]`, big-endian. Producers
compress and encrypt the whole batch, so callers decrypt and decompress first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from google.protobuf.message import DecodeError, EncodeError

from pulsarium.proto.errors import BatchError
from pulsarium.proto.generated.PulsarApi_pb2 import SingleMessageMetadata

#: The most messages of a batch that is taken apart. 600 compressed bytes can hold a million messages, which need a
#: thousand times as much memory. Programs that may lose no message of a producer pass a higher limit.
MOST_MESSAGES = 2**16
#: The most messages of a batch that one step of an event loop takes apart, in about 30 ms.
MOST_AT_ONCE = 2**13

_U32 = Struct(">I")


def pack(messages: Iterable[tuple[SingleMessageMetadata, bytes]]) -> bytes:
    """Return the payload of a batch of these messages. Sets payload_size in their metadata."""
    parts: list[bytes] = []
    for metadata, message in messages:
        metadata.payload_size = len(message)
        encoded = metadata.SerializeToString()
        parts += (_U32.pack(len(encoded)), encoded, message)
    return b"".join(parts)


def unpack(payload: bytes, count: int, most: int = MOST_MESSAGES) -> list[tuple[SingleMessageMetadata, bytes]]:
    """Return the first `count` messages of a batch.

    Raise `BatchError` when there are fewer, or more than `most`. Further bytes are ignored.
    """
    return list(messages_of(payload, count, most))


def messages_of(payload: bytes, count: int, most: int = MOST_MESSAGES) -> Iterator[tuple[SingleMessageMetadata, bytes]]:
    """Yield the messages that `unpack` returns, one at a time, because each takes more memory than its bytes."""
    if count > most:
        raise BatchError(f"{count} messages in a batch, of which at most {most} are taken apart")
    start = 0
    for index in range(count):
        metadata, start = _single(payload, start, index)
        stop = start + metadata.payload_size
        if not start <= stop <= len(payload):
            raise BatchError(f"message {index} of {metadata.payload_size} bytes is beyond its batch of {len(payload)}")
        yield metadata, payload[start:stop]
        start = stop


def _single(payload: bytes, start: int, index: int) -> tuple[SingleMessageMetadata, int]:
    """Return the metadata at `start`, and the offset of its message."""
    start += 4
    if start > len(payload):
        raise BatchError(f"batch of {len(payload)} bytes ends before message {index}")
    stop = start + _U32.unpack_from(payload, start - 4)[0]
    if stop > len(payload):
        raise BatchError(f"metadata of message {index} is beyond its batch of {len(payload)}")
    metadata = SingleMessageMetadata()
    try:
        metadata.ParseFromString(payload[start:stop])
        metadata.SerializeToString()  # fails where a required field is absent
    except (DecodeError, EncodeError) as error:
        raise BatchError(f"metadata of message {index}: {error}") from None
    return metadata, stop
