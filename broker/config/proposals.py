"""Proposals (PIPs) that `--pip` switches on before a release of Pulsar has them. Each is declared here, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from pulsarium.broker.config.meaning import ConfigError
from pulsarium.proto.drafts import DRAFT_COMMANDS, DRAFT_FIELDS

BACKLOG_AGE: Final = 488
TOKEN_KEYS: Final = 490
MESSAGE_PERMITS: Final = 491
NEGATIVE_ACKS: Final = 493


class Proposal(NamedTuple):
    """A proposal behind a switch. `broker/config/keys.py` names the proposal beside each key that belongs to it.

    status: what became of the proposal, at the time of writing.
    does: what the switch does, in one sentence without its end.
    """

    number: int
    title: str
    status: str
    does: str

    @property
    def draft_commands(self) -> frozenset[str]:
        """Return the commands that exist only in a draft of the protocol, such as NEGATIVE_ACK."""
        return frozenset(name for name, number in DRAFT_COMMANDS.items() if number == self.number)

    @property
    def draft_fields(self) -> tuple[str, ...]:
        """Return the fields of commands that exist only in a draft, such as CommandMessage.message_permits."""
        return tuple(field for field, number in DRAFT_FIELDS.items() if number == self.number)

    @property
    def draft_flags(self) -> frozenset[str]:
        """Return the feature flags that exist only in a draft."""
        fields = (field.split(".") for field in self.draft_fields)
        return frozenset(name for message, name in fields if message == "FeatureFlags")

    def __str__(self) -> str:
        return f"PIP-{self.number}"


PROPOSALS: Final[Mapping[int, Proposal]] = MappingProxyType(
    {
        each.number: each
        for each in (
            Proposal(
                BACKLOG_AGE,
                "Age of the backlog of each subscription",
                "accepted, and in Pulsar 5.0.1: the profile pulsar-5.0 has it without the switch",
                "Show the age of a subscription's backlog in stats and metrics",
            ),
            Proposal(
                TOKEN_KEYS,
                "Rotation of the keys of tokens without downtime",
                "proposed, and in no release of Pulsar",
                "Verify tokens with several keys, which are found by kid and read again while the broker runs",
            ),
            Proposal(
                MESSAGE_PERMITS,
                "Exact return of permits",
                "proposed, and in no release of Pulsar",
                "Tell in each MESSAGE how many permits the broker took for it",
            ),
            Proposal(
                NEGATIVE_ACKS,
                "Negative acknowledgement in the order of keys",
                "proposed, and in no release of Pulsar",
                "Withhold later messages of a key on Key_Shared after a negative acknowledgement",
            ),
        )
    }
)


def proposals_of(given: Iterable[object]) -> frozenset[int]:
    """Return the numbers of proposals, from numbers and texts such as "490,488". Raise `ConfigError` for another."""
    texts = [part.strip() for each in given for part in str(each).split(",")]
    known = {str(number): number for number in PROPOSALS}
    for text in texts:
        if text not in known:
            raise ConfigError("pip", "", f"no PIP {text} can be switched on here; there are {', '.join(known)}")
    return frozenset(known[text] for text in texts)


def remedy(number: int) -> str:
    """Return why a key of a proposal has no effect while the proposal is off, and what to do."""
    return f"the key belongs to {PROPOSALS[number]}, which is off; switch it on with --pip {number}"
