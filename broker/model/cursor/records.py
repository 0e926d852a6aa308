"""What a cursor keeps: Pulsar's ManagedCursorInfo in the metadata store, and PositionInfo in the cursor's own ledger.

While acknowledgements come, the ManagedCursorInfo only names the cursor's ledger, whose newest PositionInfo counts. A
cursor that is closed puts everything back into the metadata store, unless its ranges are too many for that
(managedLedgerMaxUnackedRangesToPersistInMetadataStore).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from struct import unpack
from typing import NamedTuple, Protocol

from pyroaring import BitMap

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger import info_compression
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.message_id import bits_of, words_of


class BatchAcks:
    """The remaining messages of each partly acknowledged batch."""

    def __init__(self) -> None:
        self._remaining: dict[Position, int] = {}
        self._order = PositionSet()  # the same positions, in order
        self.encoded: dict[Position, bytes] = {}  # what a record says of them; whoever writes one fills it

    def __len__(self) -> int:
        return len(self._remaining)

    def merge(self, position: Position, words: Sequence[int]) -> bool:
        """Intersect with what a client says remains; True when nothing does: the whole entry is acknowledged."""
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
        """The messages of a partly acknowledged batch that remain; None of any other entry."""
        return self._remaining.get(position)

    def words(self, position: Position) -> list[int]:
        """The ack set of an entry for MESSAGE; [] when all of it remains."""
        bits = self._remaining.get(position)
        return words_of(bits) if bits else []

    def remaining(self, position: Position) -> int:
        """How many messages of a partly acknowledged batch are left."""
        return self._remaining.get(position, 0).bit_count()

    def forget(self, position: Position) -> None:
        """The whole entry was acknowledged."""
        if self._remaining.pop(position, None) is not None:
            self._order.discard(position)
            self.encoded.pop(position, None)

    def forget_through(self, position: Position) -> None:
        """Everything up to `position` was acknowledged."""
        for known in self._order:
            if known > position:
                break
            del self._remaining[known]
            self.encoded.pop(known, None)
        self._order.remove_through(position)

    def __iter__(self) -> Iterator[Position]:
        """The positions, in order."""
        return iter(self._order)

    def clear(self) -> None:
        self._remaining.clear()
        self._order.clear()
        self.encoded.clear()


_BATCH = "batchedEntryDeletionIndexInfo"
_POSITION_INFO_BATCH = bytes([ml.PositionInfo.DESCRIPTOR.fields_by_name[_BATCH].number << 3 | 2])  # tags
_CURSOR_INFO_BATCH = bytes([ml.ManagedCursorInfo.DESCRIPTOR.fields_by_name[_BATCH].number << 3 | 2])

NO_LEDGER = -1  # a cursorsLedgerId: everything is in the ManagedCursorInfo


class CursorState(Protocol):
    """What outlives the broker."""

    mark_delete: Position
    individual_acks: PositionSet
    batch_acks: BatchAcks
    properties: dict[str, int]


class AcksRecord(NamedTuple):
    """The individual acknowledgements that are kept, as a part of a PositionInfo."""

    data: bytes
    through: Position  # acknowledging something behind it does not change the record


class CursorFormat:
    """How broker.conf wants cursors to be kept.

    forgets_parts: what the metadata store has of partly acknowledged batches is not read back.
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
        """Whether a closed cursor with these individual acknowledgements goes into the metadata store."""
        return self._max_ranges == 0 or acks.count_ranges() <= self.max_ranges_in_metadata

    # writing

    def cursor_info(
        self, state: CursorState, ledger_id: int, cursor_properties: Mapping[str, str], now_ms: int
    ) -> bytes:
        """The value of the metadata store: everything with NO_LEDGER, else where to find it."""
        info = ml.ManagedCursorInfo(
            cursorsLedgerId=ledger_id,
            markDeleteLedgerId=state.mark_delete.ledger_id,
            markDeleteEntryId=state.mark_delete.entry_id,
            lastActive=now_ms,
            properties=_long_properties(state),
        )
        if ledger_id == NO_LEDGER:
            info.individualDeletedMessages.extend(
                map(_message_range, islice(state.individual_acks.ranges(), self._max_ranges))
            )
        for name, text in cursor_properties.items():
            info.cursorProperties.add(name=name, value=text)
        batches = self._batches(state, _CURSOR_INFO_BATCH) if ledger_id == NO_LEDGER else b""
        return self._compression.pack(info.SerializeToString() + batches)  # a message may come in parts

    def position_info(self, state: CursorState, acks: AcksRecord) -> bytes:
        """The entry of the cursor's ledger; `acks` may be of earlier, when nothing changed that it shows."""
        ledger_id, entry_id = state.mark_delete
        info = ml.PositionInfo(ledgerId=ledger_id, entryId=entry_id, properties=_long_properties(state))
        return info.SerializeToString() + self._batches(state, _POSITION_INFO_BATCH) + acks.data

    def acks_record(self, acks: PositionSet) -> AcksRecord:
        """Those that are kept, the first ones, in so many ranges (managedLedgerMaxUnackedRangesToPersist)."""
        info = ml.PositionInfo()
        left, through = self._max_ranges, EARLIEST
        for ledger_id, firsts, lasts in acks.runs():
            firsts, lasts = (firsts[:left], lasts[:left]) if left < len(firsts) else (firsts, lasts)
            if not firsts:
                break
            if self._long_arrays:
                info.individualDeletedMessageRanges.add(key=ledger_id, values=_words(firsts, lasts))
            else:
                ranges = zip(firsts, lasts, strict=True)
                info.individualDeletedMessages.extend(
                    _message_range((Position(ledger_id, first - 1), Position(ledger_id, last)))
                    for first, last in ranges
                )
            left -= len(firsts)
            through = Position(ledger_id, lasts.max() + 1)  # the entry behind the last one prolongs its range
        return AcksRecord(info.SerializePartialToString(), LATEST if left else through)

    def _batches(self, state: CursorState, tag: bytes) -> bytes:
        """The first partly acknowledged batches (managedLedgerMaxBatchDeletedIndexToPersist), as fields with this tag.

        Between two records few of them change, so that each is kept as it was encoded.
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
        """Take over what a record says."""
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
        state.properties = {number.name: number.value for number in info.properties}


def read_cursor_info(value: bytes) -> ml.ManagedCursorInfo:
    """What the metadata store holds of a cursor."""
    return ml.ManagedCursorInfo.FromString(info_compression.unpack(value))


def _with_size(message: bytes) -> bytes:
    """A message as protobuf puts it into another, behind its tag."""
    size, head = len(message), bytearray()
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + message


def _long_properties(state: CursorState) -> list[ml.LongProperty]:
    return [ml.LongProperty(name=name, value=value) for name, value in state.properties.items()]


def _nested(position: Position) -> ml.NestedPositionInfo:
    return ml.NestedPositionInfo(ledgerId=position.ledger_id, entryId=position.entry_id)


def _message_range(ends: tuple[Position, Position]) -> ml.MessageRange:
    before, last = ends
    return ml.MessageRange(lowerEndpoint=_nested(before), upperEndpoint=_nested(last))


def _words(firsts: BitMap, lasts: BitMap) -> tuple[int, ...]:
    """Signed 64-bit words, lowest first, with a bit for each entry of these runs.

    A run from f to l is the number 2**(l + 1) - 2**f; the whole is the sum of all of them.
    """
    count = lasts.max() // 64 + 1
    begins, ends = bytearray(8 * count), bytearray(8 * count + 1)
    for first in firsts:
        begins[first >> 3] |= 1 << (first & 7)
    for last in lasts:
        ends[(last + 1) >> 3] |= 1 << ((last + 1) & 7)
    bits = int.from_bytes(ends, "little") - int.from_bytes(begins, "little")
    return unpack(f"<{count}q", bits.to_bytes(8 * count, "little"))


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
