"""Fuzz target that passes an entry to all code that takes entries apart without a broker.

This code is our client's decoder, compaction, and the formats of compacted batches. The target is much quicker than
`entries`, which also runs entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random
from zlib import crc32

from pulsarium.client.entry.decoding import Decoder, RawDecoder, UnreadableEntry, join, messages
from pulsarium.client.errors import PulsarError
from pulsarium.proto import entry as entries
from pulsarium.proto.compacted_values import to_batch, to_values
from pulsarium.proto.compaction import open_entry
from pulsarium.proto.errors import BatchError, CompressionError, EntryError
from pulsarium.proto.last_entry import last_batch_index, take_apart
from tests.client.entry.encrypted import VECTORS, recorded
from tests.proto.golden import golden_entries
from yardsticks.fuzz import mutations
from yardsticks.fuzz.entries import entry_like, odd_entries
from yardsticks.fuzz.frames import cut
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.recorded import conversations
from yardsticks.fuzz.target import Target


class Batches(Target):
    """Batches of messages in one entry."""

    name = "batches"
    fresh = 2000

    def run(self, data: bytes) -> None:
        with watched():
            as_broker(data)
            as_client(data)
            as_compaction(data)

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        if others and random.random() < 0.05:
            data = random.choice(others)
        return mutations.any_bytes(data, random) if random.random() < 0.1 else entry_like(data, random)

    def seeds(self) -> Iterable[bytes]:
        yield from odd_entries()
        yield from (golden.frame for golden in golden_entries())
        yield from (entry for each in recorded() for entry in each.entries)
        for conversation in conversations():
            yield from (found[1] for _, data in conversation for found in cut(data)[0] if found[1])


def as_broker(entry: bytes) -> None:
    """Read all that the broker reads from an entry."""
    with suppress(EntryError):
        entries.checksum_matches(entry)
    with suppress(EntryError):
        entries.txn_bits_of(entry)
    with suppress(EntryError):
        entries.parse_broker_metadata(entry)
    with suppress(EntryError):
        entries.split(entries.with_txn_bits(entry, 1, 2))
    entries.strip_checksum(entry)
    if entries.is_plain(entry):
        with suppress(EntryError):
            metadata = entries.parse_metadata(entry)
            if metadata.HasField("num_messages_in_batch") or metadata.HasField("marker_type"):
                raise Finding("is_plain", str(metadata))
    with suppress(EntryError, BatchError, CompressionError):
        buffer = take_apart(entry)
        last_batch_index(buffer.metadata, buffer.payload)


class Key:
    """A private key of the recorded vectors, which serves every key name."""

    def __init__(self, kind: str) -> None:
        self._pem = (VECTORS / f"{kind}-private.pem").read_bytes()

    def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
        raise NotImplementedError

    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        return self._pem


def as_client(entry: bytes) -> None:
    """Decode an entry with each decoder of our client, and join a chunk with itself."""
    for decoder in (Decoder(), Decoder(Key("rsa")), Decoder(Key("ec")), RawDecoder()):
        with suppress(PulsarError):
            decoded = decoder.decode(entry)
            if decoded.is_chunk:
                decoded = join([decoded, decoded])
            for index, single, _ in messages(decoded, [1, -1 % 2**64]):
                if index >= 0 and single is None:
                    raise Finding("a message of a batch without metadata", repr(decoded))


def as_compaction(entry: bytes) -> None:
    """Compact an entry to some of its messages, and check that these can be read again in both formats."""
    opened = open_entry(entry)
    to_batch(entry)
    if opened is None or opened.messages is None:
        return
    indexes = [each.batch_index for each in opened.messages]
    random = Random(crc32(entry))
    some = [index for index in indexes if random.random() < 0.5]
    left = opened.rewritten(some)
    if left is None:
        return
    again = open_entry(left)
    if again is None or again.messages is None:
        raise Finding("rewritten, it cannot be read", repr(left))
    if indexes != [-1] and [each.batch_index for each in again.messages] != some:
        raise Finding("rewritten, it has other messages", f"{some} of {indexes}: {again.messages}")
    back = to_batch(to_values(left))
    with suppress(UnreadableEntry, PulsarError):
        first, second = (Decoder().decode(each) for each in (left, back))
        if [value for _, _, value in messages(first)] != [value for _, _, value in messages(second)]:
            raise Finding("values and back", f"{messages(first)} became {messages(second)}")
