"""What the broker writes in front of each entry (brokerEntryMetadataInterceptors)."""

from __future__ import annotations

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.proto.entry import parse_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb

INDEX_PROPERTY = "index"  # where the count stands once the entry that had it is gone; Pulsar keeps it there always


class EntryStamps:
    """Stamps entries with the broker's time and with the index of their last message, as far as configured."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._timestamp = config.appends_broker_timestamp
        self._index = config.appends_index
        self._clock = clock
        self.index = -1  # of the last message

    def __bool__(self) -> bool:
        return self._timestamp or self._index

    def next(self, messages: int) -> pb.BrokerEntryMetadata:
        """The stamp of the next entry, which counts for `messages` messages."""
        stamp = pb.BrokerEntryMetadata()
        if self._timestamp:
            stamp.broker_timestamp = self._clock.now_ms()
        if self._index:
            self.index += messages
            stamp.index = max(self.index, 0)
        return stamp

    def go_on_after(self, entry: bytes) -> None:
        """The last entry of a topic that is loaded again."""
        stamp = parse_broker_metadata(entry)  # what the producer sent may be anything
        if stamp is not None and stamp.HasField("index"):
            self.index = stamp.index

    def go_on_from(self, index: str) -> None:
        """The same, when its last entry is gone; `index` is what was kept instead, if anything."""
        if self._index and index.isdecimal():
            self.index = int(index)
