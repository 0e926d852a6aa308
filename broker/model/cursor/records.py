"""Encode and decode stored cursors: Pulsar's ManagedCursorInfo as metadata, and PositionInfo in the cursor's ledger.

While a cursor takes acknowledgements, its ManagedCursorInfo only names the ledger, whose newest PositionInfo counts. A
closed cursor moves everything back to the metadata store, unless it has too many ranges
(managedLedgerMaxUnackedRangesToPersistInMetadataStore).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger import info_compression
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.message_id import bits_of, words_of


class BatchAcks:
    """The unacknowledged messages of each partly acknowledged batch."""

    def __init__(self) -> None:
        self._remaining: dict[Position, int] = {}
        self._order = PositionSet()  # the same positions, in order
        self.encoded: dict[Position, bytes] = {}  # encoded batches for records, filled by the writer of a record

    def __len__(self) -> int:
        return len(self._remaining)

    def merge(self, position: Position, words: Sequence[int]) -> bool:
        """Intersect with the remaining messages that a client sent. Return True when none remain."""
        bits = bits_of(words)
        if position in self._remaining:
            bits &= self._remaining[position]
        if bits == 0:
            self.forget(position)
            return True
        self._remaining[position] = bits
        self._order.add(position)
        self.encoded.pop(position, None)
        return False

    def bits(self, position: Position) -> int | None:
        """Return the bits of the remaining messages of a partly acknowledged batch, or None for any other entry."""
        return self._remaining.get(position)

    def words(self, position: Position) -> list[int]:
        """Return the ack set of an entry for MESSAGE, or [] when all messages remain."""
        bits = self._remaining.get(position)
        return words_of(bits) if bits else []

    def remaining(self, position: Position) -> int:
        """Count the remaining messages of a partly acknowledged batch."""
        return self._remaining.get(position, 0).bit_count()

    def forget(self, position: Position) -> None:
        """Forget an entry that is acknowledged completely."""
        if self._remaining.pop(position, None) is not None:
            self._order.discard(position)
            self.encoded.pop(position, None)

    def forget_through(self, position: Position) -> None:
        """Forget all entries up to `position`, because they are acknowledged."""
        for known in self._order:
            if known > position:
                break
            del self._remaining[known]
            self.encoded.pop(known, None)
        self._order.remove_through(position)

    def __iter__(self) -> Iterator[Position]:
        """Return the positions in order."""
        return iter(self._order)

    def clear(self) -> None:
        self._remaining.clear()
        self._order.clear()
        self.encoded.clear()


_BATCH = "batchedEntryDeletionIndexInfo"
_POSITION_INFO_BATCH = bytes([ml.PositionInfo.DESCRIPTOR.fields_by_name[_BATCH].number << 3 | 2])  # tags
_CURSOR_INFO_BATCH = bytes([ml.ManagedCursorInfo.DESCRIPTOR.fields_by_name[_BATCH].number << 3 | 2])

NO_LEDGER = -1  # a cursorsLedgerId: the ManagedCursorInfo has the whole state


class CursorProperties(dict[str, int]):
    """The properties that the last cumulative acknowledgement left. They never change, and are encoded once.

    One ACK may bring hundreds of thousands, and each record of the cursor has them all.
    """

    @cached_property
    def encoded(self) -> tuple[bytes, bytes]:
        """Return the properties as fields of a ManagedCursorInfo, and of a PositionInfo."""
        info, record = ml.ManagedCursorInfo(), ml.PositionInfo()
        for name, value in self.items():
            info.properties.add(name=name, value=value)
        record.properties.extend(info.properties)
        return info.SerializePartialToString(), record.SerializePartialToString()


NO_PROPERTIES = CursorProperties()


class SubscriptionProperties(dict[str, str]):
    """The properties that a subscription was created with, or was given over REST. They are encoded once, too."""

    @cached_property
    def encoded(self) -> bytes:
        """Return the properties as fields of a ManagedCursorInfo."""
        info = ml.ManagedCursorInfo()
        for name, value in self.items():
            info.cursorProperties.add(name=name, value=value)
        return info.SerializePartialToString()


NO_SUBSCRIPTION_PROPERTIES = SubscriptionProperties()


class CursorState(Protocol):
    """The state of a cursor that a restart of the broker keeps."""

    mark_delete: Position
    individual_acks: PositionSet
    batch_acks: BatchAcks
    properties: CursorProperties


class AcksRecord(NamedTuple):
    """The encoded individual acknowledgements, as a part of a PositionInfo."""

    data: bytes
    through: Position  # acknowledgements behind this position leave the record unchanged


class CursorFormat:
    """Format in which cursors are stored, from broker.conf.

    With `forgets_parts`, partly acknowledged batches are not read back from the metadata store.
    """

    def __init__(self, config: Config, *, forgets_parts: bool = False) -> None:
        self.max_ranges_in_metadata = config.managedLedgerMaxUnackedRangesToPersistInMetadataStore
        self._max_ranges = max(config.managedLedgerMaxUnackedRangesToPersist, 0)
        self._max_batches = max(config.managedLedgerMaxBatchDeletedIndexToPersist, 0)
        self._batch_acks = config.acknowledgmentAtBatchIndexLevelEnabled
        self._batch_acks_of_info = self._batch_acks and not forgets_parts
        self._long_arrays = (
            config.managedLedgerPersistIndividualAckAsLongArray and config.managedLedgerUnackedRangesOpenCacheSetEnabled
        )
        self._compression = info_compression.InfoCompression(
            config.managedCursorInfoCompressionType, config.managedCursorInfoCompressionThresholdInBytes
        )

    def fits_metadata(self, acks: PositionSet) -> bool:
        """Return whether the metadata store takes a closed cursor with these individual acknowledgements."""
        return self._max_ranges == 0 or acks.count_ranges() <= self.max_ranges_in_metadata

    # writing

    def cursor_info(self, state: CursorState, cursor_properties: SubscriptionProperties, now_ms: int) -> bytes:
        """Return the ManagedCursorInfo of a cursor without a ledger, which has the whole state."""
        info = _cursor_info(NO_LEDGER, state.mark_delete, now_ms)
        info.individualDeletedMessages.extend(
            map(_message_range, islice(state.individual_acks.ranges(), self._max_ranges))
        )
        return self._packed(info, state, cursor_properties, self._batches(state, _CURSOR_INFO_BATCH))

    def ledger_info(
        self,
        state: CursorState,
        ledger_id: int,
        opened_at: Position,
        cursor_properties: SubscriptionProperties,
        now_ms: int,
    ) -> bytes:
        """Return the ManagedCursorInfo of a cursor with a ledger.

        As in Pulsar, its mark-delete position is the one from before the ledger was opened.
        """
        return self._packed(_cursor_info(ledger_id, opened_at, now_ms), state, cursor_properties)

    def _packed(
        self, info: ml.ManagedCursorInfo, state: CursorState, properties: SubscriptionProperties, batches: bytes = b""
    ) -> bytes:
        # protobuf merges concatenated messages
        encoded = state.properties.encoded[0] + properties.encoded
        return self._compression.pack(info.SerializeToString() + encoded + batches)

    def position_info(self, state: CursorState, acks: AcksRecord) -> bytes:
        """Return the entry of the cursor's ledger. `acks` may be older when no acknowledgement has changed it."""
        ledger_id, entry_id = state.mark_delete
        mark = ml.PositionInfo(ledgerId=ledger_id, entryId=entry_id).SerializeToString()
        return mark + state.properties.encoded[1] + self._batches(state, _POSITION_INFO_BATCH) + acks.data

    def acks_record(self, acks: PositionSet) -> AcksRecord:
        """Return the first individual acknowledgements, at most managedLedgerMaxUnackedRangesToPersist ranges."""
        info = ml.PositionInfo()
        left, through = self._max_ranges, EARLIEST
        for ledger_id, firsts, lasts in acks.runs():
            firsts, lasts = (firsts[:left], lasts[:left]) if left < len(firsts) else (firsts, lasts)
            if not firsts:
                break
            if self._long_arrays:
                info.individualDeletedMessageRanges.add(key=ledger_id, values=acks.words(ledger_id, lasts.max()))
            else:
                ranges = zip(firsts, lasts, strict=True)
                info.individualDeletedMessages.extend(
                    _message_range((Position(ledger_id, first - 1), Position(ledger_id, last)))
                    for first, last in ranges
                )
            left -= len(firsts)
            through = Position(ledger_id, lasts.max() + 1)  # the next entry would extend the last range
        return AcksRecord(info.SerializePartialToString(), LATEST if left else through)

    def _batches(self, state: CursorState, tag: bytes) -> bytes:
        """Return the first partly acknowledged batches, as fields with this tag.

        Their number is at most managedLedgerMaxBatchDeletedIndexToPersist. Few batches change between two
        records, so each encoded batch is kept.
        """
        fields: list[bytes] = []
        encoded = state.batch_acks.encoded
        for position in islice(state.batch_acks, self._max_batches):
            field = encoded.get(position)
            if field is None:
                words = state.batch_acks.words(position)
                batch = ml.BatchedEntryDeletionIndexInfo(position=_nested(position), deleteSet=words)
                field = encoded[position] = _with_size(batch.SerializeToString())
            fields += tag, field
        return b"".join(fields)

    # reading

    def restore(self, state: CursorState, info: ml.ManagedCursorInfo | ml.PositionInfo) -> None:
        """Restore the state of a record."""
        if isinstance(info, ml.PositionInfo):
            state.mark_delete = Position(info.ledgerId, info.entryId)
            for words in info.individualDeletedMessageRanges:
                _add_words(state.individual_acks, words.key, words.values)
        else:
            state.mark_delete = Position(info.markDeleteLedgerId, info.markDeleteEntryId)
        for kept in info.individualDeletedMessages:
            lower, upper = kept.lowerEndpoint, kept.upperEndpoint
            state.individual_acks.add_range(upper.ledgerId, lower.entryId + 1, upper.entryId + 1)
        if self._batch_acks if isinstance(info, ml.PositionInfo) else self._batch_acks_of_info:
            for batch in info.batchedEntryDeletionIndexInfo:
                state.batch_acks.merge(Position(batch.position.ledgerId, batch.position.entryId), batch.deleteSet)
        state.properties = CursorProperties((number.name, number.value) for number in info.properties)


def read_cursor_info(value: bytes) -> ml.ManagedCursorInfo:
    """Parse the stored info of a cursor."""
    return ml.ManagedCursorInfo.FromString(info_compression.unpack(value))


def _cursor_info(ledger_id: int, mark: Position, now_ms: int) -> ml.ManagedCursorInfo:
    return ml.ManagedCursorInfo(
        cursorsLedgerId=ledger_id,
        markDeleteLedgerId=mark.ledger_id,
        markDeleteEntryId=mark.entry_id,
        lastActive=now_ms,
    )


def _with_size(message: bytes) -> bytes:
    """Return a nested protobuf message as it follows its tag, behind its size."""
    size, head = len(message), bytearray()
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + message


def _nested(position: Position) -> ml.NestedPositionInfo:
    return ml.NestedPositionInfo(ledgerId=position.ledger_id, entryId=position.entry_id)


def _message_range(ends: tuple[Position, Position]) -> ml.MessageRange:
    before, last = ends
    return ml.MessageRange(lowerEndpoint=_nested(before), upperEndpoint=_nested(last))


def _add_words(acks: PositionSet, ledger_id: int, words: Iterable[int]) -> None:
    for base, word in enumerate(words):
        if word == -1:
            acks.add_range(ledger_id, 64 * base, 64 * base + 64)
            continue
        word &= 2**64 - 1
        while word:
            lowest = word & -word
            acks.add(Position(ledger_id, 64 * base + lowest.bit_length() - 1))
            word ^= lowest
