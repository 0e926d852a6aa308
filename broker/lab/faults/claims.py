"""Remember the commands whose answers a rule waits for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulsarium.broker.commands.answers import Asked, Key, key_of_answer, key_of_command
from pulsarium.broker.lab.faults.rule import InstalledFault
from pulsarium.proto.commands import CommandSpec

MOST = 10_000  # some commands are never answered, such as an ACK of a closed consumer


@dataclass
class Command:
    """A command without its entry, remembered until its answer."""

    spec: CommandSpec
    body: Any


class Claim(NamedTuple):
    """A command whose answer is reserved for a rule."""

    rule: InstalledFault
    command: Command


class Claims:
    """The commands that wait for an answer, in order of arrival. Several commands may have the same id."""

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Claim]] = {}
        self._count = 0
        self._closed = False

    def add(self, rule: InstalledFault, command: Asked) -> None:
        """Reserve the answer to this command for the rule."""
        key = key_of_command(command)
        assert key is not None
        self._waiting.setdefault(key, []).append(Claim(rule, Command(command.spec, command.body)))
        self._count += 1
        if self._count > MOST:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            self._count -= len(oldest)
            self._give_back(oldest)

    def answered(self, answer: Asked) -> Claim | None:
        """Return the claim on this answer, and remove the claim. Return None for an answer without one."""
        key = key_of_answer(answer) if self._waiting else None
        claims = None if key is None else self._waiting.get(key)
        if key is None or claims is None:
            return None
        claim = claims.pop(0)
        self._count -= 1
        if not claims:
            del self._waiting[key]
        return None if self._closed and not claim.rule.occurrence.take_back() else claim

    @property
    def waiting(self) -> bool:
        """Return whether any command waits for an answer."""
        return bool(self._waiting)

    def forget(self, rules: Collection[InstalledFault]) -> None:
        """Remove the claims of removed rules."""
        left = {key: [claim for claim in claims if claim.rule not in rules] for key, claims in self._waiting.items()}
        self._waiting = {key: claims for key, claims in left.items() if claims}
        self._count = sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """Give all turns back, because the connection ends. An answer among the last frames takes its turn again."""
        self._closed = True
        for claims in self._waiting.values():
            self._give_back(claims)

    @staticmethod
    def _give_back(claims: list[Claim]) -> None:
        for claim in claims:
            claim.rule.occurrence.give_back()
