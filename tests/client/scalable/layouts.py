"""Layouts of scalable topics for tests, as brokers send them."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.client.scalable.layout import Hashing, Layout
from pulsarium.proto.generated import PulsarApi_pb2 as pb

TOPIC = "topic://public/default/t"


def segment(
    id: int,
    start: int,
    end: int,
    *,
    sealed: bool = False,
    parents: Sequence[int] = (),
    children: Sequence[int] = (),
    legacy: str = "",
    splits: Sequence[int] = (),
) -> pb.SegmentInfoProto:
    made = pb.SegmentInfoProto(
        segment_id=id,
        hash_start=start,
        hash_end=end,
        state=pb.SEALED if sealed else pb.ACTIVE,
        parent_ids=parents,
        child_ids=children,
        created_at_epoch=0,
        created_at_ms=1,
        entry_bucket_splits=splits,
    )
    if legacy:
        made.legacy_topic_name = legacy
    return made


def dag(epoch: int, *segments: pb.SegmentInfoProto, controller: str = "") -> pb.ScalableTopicDAG:
    made = pb.ScalableTopicDAG(epoch=epoch, segments=segments)
    if controller:
        made.controller_broker_url = controller
    return made


ONE = dag(0, segment(0, 0, 0xFFFF))
SPLIT = dag(
    1,
    segment(0, 0, 0xFFFF, sealed=True, children=[1, 2]),
    segment(1, 0, 0x7FFF, parents=[0]),
    segment(2, 0x8000, 0xFFFF, parents=[0]),
)
MERGED = dag(
    2,
    segment(0, 0, 0xFFFF, sealed=True, children=[1, 2]),
    segment(1, 0, 0x7FFF, sealed=True, parents=[0], children=[3]),
    segment(2, 0x8000, 0xFFFF, sealed=True, parents=[0], children=[3]),
    segment(3, 0, 0xFFFF, parents=[1, 2]),
)


def layout(found: pb.ScalableTopicDAG, hashing: Hashing = Hashing.HIGH_BITS) -> Layout:
    return Layout.read(TOPIC, found, hashing)


def segment_name(descriptor: str) -> str:
    return f"segment://public/default/t/{descriptor}"
