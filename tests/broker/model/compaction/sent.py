"""Entries in all forms that a topic may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import Single, keyed_batch
from tests.broker.wire import plain

KINDS = (pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
ENCRYPTED = [pb.EncryptionKeys(key="x", value=b"y")]

singles = st.tuples(st.sampled_from([None, "a", "b", "c", "\u00e9"]), st.sampled_from([b"", b"1", b"2" * 50]))


@dataclass(frozen=True)
class Sent:
    """An entry of a batch or of one message, or a strange one: a marker or unreadable bytes."""

    messages: tuple[Single, ...]
    is_batch: bool = False
    compression: pb.CompressionType = pb.NONE
    encrypted: bool = False
    strange: bytes | None = None

    @property
    def entry(self) -> bytes:
        if self.strange is not None:
            return self.strange
        keys = ENCRYPTED if self.encrypted else []
        key, value = self.messages[0]
        own: dict[str, Any] = {} if key is None else {"partition_key": key}
        if self.is_batch:
            own = own if self.encrypted else {}  # the key of a batch counts only when the batch is encrypted
            return keyed_batch(*self.messages, compression=self.compression, encryption_keys=keys, **own)
        return plain(value, encryption_keys=keys, null_value=not value, **own)


sent = st.one_of(
    st.builds(Sent, st.tuples(singles), encrypted=st.booleans()),
    st.builds(
        Sent,
        st.lists(singles, min_size=1, max_size=5).map(tuple),
        is_batch=st.just(True),
        compression=st.sampled_from(KINDS),
        encrypted=st.booleans(),
    ),
    st.builds(Sent, st.just(()), strange=st.sampled_from([plain(b"", marker_type=1), b"\x0e\x01garbage", b""])),
)
