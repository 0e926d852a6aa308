"""Options of a consumer, from its SUBSCRIBE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import itemgetter

from pulsarium.proto.generated import PulsarApi_pb2 as pb

Range = tuple[int, int]  # first and last hash


class HashRanges:
    """The hash ranges of SUBSCRIBE, as they came (`pairs`) and in order. `fault` says why a STICKY consumer is refused.

    One command may bring half a million ranges, so they are read, sorted and judged once, by a thread if need be. No
    step of Python's is taken for each range after that: the work that follows is done in C.
    """

    __slots__ = ("ends", "fault", "pairs", "starts")

    def __init__(self, pairs: Iterable[Range] = ()) -> None:
        self.pairs = tuple(pairs)
        in_order = sorted(self.pairs, key=itemgetter(0))
        self.starts = [start for start, _ in in_order]
        self.ends = [end for _, end in in_order]
        self.fault = self._fault(in_order)

    @staticmethod
    def _fault(in_order: Sequence[Range]) -> str | None:
        if not in_order:
            return "Ranges for KeyShared policy must not be empty."
        for each, following in zip_longest(in_order, in_order[1:]):
            if each[0] > each[1]:
                return f"Fixed hash range start > end for range: {_shown(each)}"
            if following is not None and max(each[0], following[0]) <= min(each[1], following[1]):
                return f"Consumer's own ranges conflict: {_shown(each)} overlaps with {_shown(following)}"
        return None


def _shown(each: Range) -> str:
    return f"[{each[0]},{each[1]}]"


NO_RANGES = HashRanges()


@dataclass(frozen=True, slots=True)
class KeySharedOptions:
    """Options of KeySharedMeta in SUBSCRIBE: a KeySharedMode, and the inclusive hash ranges of a STICKY consumer.

    With `entry_buckets`, the ranges are those of all entry buckets, and the broker spreads them (PIP-486).
    """

    mode: int = pb.AUTO_SPLIT
    ranges: HashRanges = NO_RANGES
    out_of_order: bool = False
    entry_buckets: bool = False


@dataclass(slots=True)
class ConsumerOptions:
    """Options of a consumer, from its SUBSCRIBE."""

    consumer_id: int
    name: str = ""
    type: int = 0
    priority_level: int = 0
    read_compacted: bool = False
    epoch: int | None = None
    key_shared: KeySharedOptions = field(default_factory=KeySharedOptions)
    metadata: dict[str, str] = field(default_factory=dict)
    auto_schema: bool = False  # the consumer takes messages of any schema (AUTO_CONSUME)
