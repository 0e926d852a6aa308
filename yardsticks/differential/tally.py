"""Count the operations of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.drafts import DRAFT_COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type

LATER = ("SCALABLE", "TC_ASSIGNMENTS", *DRAFT_COMMANDS)
"""Parts of the names of commands that are newer than Pulsar 4.2, or that no Pulsar has."""

COVERED = tuple(
    spec.name
    for spec in COMMANDS.values()
    if spec.direction is not Direction.BROKER and not any(word in spec.name for word in LATER)
)


@dataclass
class Tally:
    """Numbers of frames by command, SUBSCRIBEs by type, REST calls by method, and tolerances that were needed."""

    commands: Counter[str] = field(default_factory=Counter)
    subscriptions: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    tolerated: Counter[str] = field(default_factory=Counter)
    programs: int = 0

    @property
    def operations(self) -> int:
        """Return the number of commands and REST calls, without the PINGs of `Link.settle`."""
        return self.commands.total() + self.calls.total()

    def least(self) -> int:
        """Return the count of the rarest command or subscription type."""
        types = (self.subscriptions[kind] for kind in pb.CommandSubscribe.SubType.keys())  # noqa: SIM118
        return min(*(self.commands[name] for name in COVERED), *types)

    def command(self, type: int, given: Mapping[str, Any]) -> None:
        self.commands[COMMANDS[type].name] += 1
        if type == Type.SUBSCRIBE:
            self.subscriptions[pb.CommandSubscribe.SubType.Name(given["subType"])] += 1

    def add(self, other: Tally) -> None:
        self.commands.update(other.commands)
        self.subscriptions.update(other.subscriptions)
        self.calls.update(other.calls)
        self.tolerated.update(other.tolerated)
        self.programs += other.programs

    def as_json(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Tally:
        counters = {name: Counter(counts) for name, counts in given.items() if name != "programs"}
        return cls(**counters, programs=given["programs"])
