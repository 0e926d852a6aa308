"""Commands and fields that the broker may send on a connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.entry import strip_broker_metadata, strip_checksum
from pulsarium.proto.generated import PulsarApi_pb2 as pb

DELIVERED_CHECKSUM_SINCE = 11
BATCH_SINCE = 4
CLOSINGS_SINCE = 5
BROKER_METADATA_SINCE = 18
LAST_ENTRY_SINCE = 22  # PIP-429


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Features that both client and broker know. Every send consults them.

    version: the protocol version of the client. agreed: the lower version of the two sides, which CONNECTED names;
        features of a later version are off. flags: the feature flags that the client set.
    """

    version: int = 0
    agreed: int = 0
    flags: frozenset[str] = frozenset()
    exposes_broker_metadata: bool = False

    @classmethod
    def of(cls, connect: pb.CommandConnect, profile: Profile = PIP, *, exposing_broker_metadata: bool) -> Capabilities:
        flags = frozenset(field.name for field, value in connect.feature_flags.ListFields() if value)
        version = connect.protocol_version
        agreed = min(version, profile.max_protocol_version)
        exposes = (
            exposing_broker_metadata and agreed >= BROKER_METADATA_SINCE and "supports_broker_entry_metadata" in flags
        )
        return cls(version, agreed, flags, exposes)

    def takes(self, command: int) -> bool:
        """Return whether the command may be sent without a request: clients disconnect on unknown commands."""
        spec = COMMANDS[command]
        if spec.feature_flag is not None and spec.feature_flag not in self.flags:
            return False
        return self.agreed >= spec.since

    @property
    def takes_checksums(self) -> bool:
        return self.agreed >= DELIVERED_CHECKSUM_SINCE

    @property
    def bare(self) -> Callable[[bytes], bytes] | None:
        """Return a function that cuts broker metadata and checksum from an entry, if the client needs that."""
        if not self.takes_checksums:
            return _without_headers
        return None if self.exposes_broker_metadata else strip_broker_metadata

    @property
    def takes_batches(self) -> bool:
        return self.agreed >= BATCH_SINCE

    @property
    def takes_closings(self) -> bool:
        """Return whether the client takes CLOSE_PRODUCER and CLOSE_CONSUMER; others are disconnected."""
        return self.agreed >= CLOSINGS_SINCE

    @property
    def takes_last_entries(self) -> bool:
        """Return whether GET_LAST_MESSAGE_ID may be answered with an entry."""
        return self.agreed >= LAST_ENTRY_SINCE


def _without_headers(entry: bytes) -> bytes:
    return strip_checksum(strip_broker_metadata(entry))
