"""Behaviour profiles: what `--profile` switches, each switch by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .version import VERSION

# These clients close their connection on a REACHED_END_OF_TOPIC (requirements.md, "Open choices"; protocol.md W-10).
CLOSED_BY_END_OF_TOPIC: Final = ("Pulsar-CPP", "Pulsar Go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How the broker behaves where the PIPs, good sense and the released broker part.

    max_protocol_version: the highest protocol version that CONNECTED announces.
    server_version: CONNECTED.server_version. Clients refuse a broker without one; none of the official ones reads it.
    end_of_topic_to_all_clients: send REACHED_END_OF_TOPIC also to clients that close their connection on it.
    consumer_stats_of_unknown_closes: CONSUMER_STATS for an unknown consumer closes the connection, as a
        NullPointerException of 4.2.4 does, where otherwise ConsumerNotFound is answered.
    """

    name: str
    max_protocol_version: int
    server_version: str
    end_of_topic_to_all_clients: bool
    consumer_stats_of_unknown_closes: bool

    def tells_end_of_topic(self, client_version: str) -> bool:
        """Whether a client that calls itself so (CONNECT.client_version) is sent REACHED_END_OF_TOPIC."""
        return self.end_of_topic_to_all_clients or not client_version.startswith(CLOSED_BY_END_OF_TOPIC)


PIP: Final = Profile(
    name="pip",
    max_protocol_version=22,
    server_version=f"Pulsarium {VERSION}",
    end_of_topic_to_all_clients=False,
    consumer_stats_of_unknown_closes=False,
)

PULSAR_4_2: Final = Profile(
    name="pulsar-4.2",
    max_protocol_version=21,
    server_version="Pulsar Server4.2.4",
    end_of_topic_to_all_clients=True,
    consumer_stats_of_unknown_closes=True,
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({each.name: each for each in (PIP, PULSAR_4_2)})
