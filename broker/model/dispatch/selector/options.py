"""What a Key_Shared consumer asks for."""

from __future__ import annotations

from dataclasses import dataclass

from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(frozen=True, slots=True)
class KeySharedOptions:
    """KeySharedMeta of SUBSCRIBE: `mode` is a KeySharedMode, `ranges` are what a STICKY consumer takes, inclusive."""

    mode: int = pb.AUTO_SPLIT
    ranges: tuple[tuple[int, int], ...] = ()
    out_of_order: bool = False
