"""Show a client an older or smaller broker, by the CONNECT and CONNECTED of its connection. Sans-IO."""

from __future__ import annotations

from typing import Final

from pulsarium.broker.lab.masks import Mask, MaskError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ON_THE_WIRE: Final = ("max_protocol_version", "flags", "client_flags")
"""The parts of a mask that need no state of the broker."""


def check_mask(mask: Mask) -> None:
    """Raise `MaskError` for a mask with a part that only a broker can obey."""
    for name in ("profile", "allowed", "unknown_error"):
        if getattr(mask, name) is not None:
            raise MaskError(
                f"{name}: only a broker of Pulsarium can do this; a mask of the proxy has {', '.join(ON_THE_WIRE)}"
            )


def mask_connect(mask: Mask, connect: pb.CommandConnect) -> None:
    """Change the CONNECT that goes on to the broker, which sends no newer commands to an older client."""
    if mask.max_protocol_version is not None:
        connect.protocol_version = min(connect.protocol_version, mask.max_protocol_version)
    for name, value in mask.client_flags.items():
        setattr(connect.feature_flags, name, value)


def mask_connected(mask: Mask, connected: pb.CommandConnected) -> None:
    """Change the CONNECTED that the client receives."""
    if mask.max_protocol_version is not None:
        connected.protocol_version = min(connected.protocol_version, mask.max_protocol_version)
    for name, value in mask.flags.items():
        setattr(connected.feature_flags, name, value)
