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
    skip_by_message_ids: PIP-423's skipByMessageIds is there; no released broker has it (S423-72).
    missing_index_is_zero: getMessageIdByIndex without an index means index 0, not 404 (X-15).
    index_on_non_persistent: the status of getMessageIdByIndex on a non-persistent topic (X-12).
    index_as_released: getMessageIdByIndex finds markers, and nothing in the first batch below its last index (X-31);
        its body has batchIndex and batchSize too (S415-03).
    peek_creates_subscription: peeking into a subscription that is not there makes it, where otherwise 404 is answered.
    own_faults_are_shown: 500, where 4.2.4 runs into an exception of its own for a call (a peek at position 0, an entry
        beyond the last, a body that is missing), where otherwise a 4xx says what was wrong.
    forbids_as_pips_say: who may not gets 403 of skipByMessageIds and getMessageIdByIndex (S423-23, S415-15), where
        4.2.4 answers 401 as of everything about topics.
    """

    name: str
    max_protocol_version: int
    server_version: str
    end_of_topic_to_all_clients: bool
    consumer_stats_of_unknown_closes: bool
    forbids_as_pips_say: bool
    skip_by_message_ids: bool
    missing_index_is_zero: bool
    index_on_non_persistent: int
    index_as_released: bool
    peek_creates_subscription: bool
    own_faults_are_shown: bool

    def tells_end_of_topic(self, client_version: str) -> bool:
        """Whether a client that calls itself so (CONNECT.client_version) is sent REACHED_END_OF_TOPIC."""
        return self.end_of_topic_to_all_clients or not client_version.startswith(CLOSED_BY_END_OF_TOPIC)


PIP: Final = Profile(
    name="pip",
    max_protocol_version=22,
    server_version=f"Pulsarium {VERSION}",
    end_of_topic_to_all_clients=False,
    consumer_stats_of_unknown_closes=False,
    forbids_as_pips_say=True,
    skip_by_message_ids=True,
    missing_index_is_zero=False,
    index_on_non_persistent=406,
    index_as_released=False,
    peek_creates_subscription=False,
    own_faults_are_shown=False,
)

PULSAR_4_2: Final = Profile(
    name="pulsar-4.2",
    max_protocol_version=21,
    server_version="Pulsar Server4.2.4",
    end_of_topic_to_all_clients=True,
    consumer_stats_of_unknown_closes=True,
    forbids_as_pips_say=False,
    skip_by_message_ids=False,
    missing_index_is_zero=True,
    index_on_non_persistent=405,
    index_as_released=True,
    peek_creates_subscription=True,
    own_faults_are_shown=True,
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({each.name: each for each in (PIP, PULSAR_4_2)})
