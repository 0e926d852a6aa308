"""Commands whose answers a rule waits for: what stage "after" remembers of one connection."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulsarium.broker.commands.answers import Asked, Key, key_of_answer, key_of_command
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.proto.commands import CommandSpec

MOST = 10_000  # some commands are never answered, as an ACK of a consumer that is gone


@dataclass
class Command:
    """What is remembered of a command: not its entry."""

    spec: CommandSpec
    body: Any


class Claim(NamedTuple):
    rule: Rule
    command: Command


class Claims:
    """In the order in which they came; several commands may have one id."""

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Claim]] = {}
        self._count = 0
        self._closed = False

    def add(self, rule: Rule, command: Asked) -> None:
        """The answer to this command is the rule's."""
        key = key_of_command(command)
        assert key is not None
        self._waiting.setdefault(key, []).append(Claim(rule, Command(command.spec, command.body)))
        self._count += 1
        if self._count > MOST:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            self._count -= len(oldest)
            self._give_back(oldest)

    def answered(self, answer: Asked) -> Claim | None:
        """Whose answer this is; it is nobody's the next time."""
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
        """Whether any answer is waited for."""
        return bool(self._waiting)

    def forget(self, rules: Collection[Rule]) -> None:
        """They were removed."""
        left = {key: [claim for claim in claims if claim.rule not in rules] for key, claims in self._waiting.items()}
        self._waiting = {key: claims for key, claims in left.items() if claims}
        self._count = sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """The connection ends: another command may be struck instead, unless the answer is among the last words."""
        self._closed = True
        for claims in self._waiting.values():
            self._give_back(claims)

    @staticmethod
    def _give_back(claims: list[Claim]) -> None:
        for claim in claims:
            claim.rule.occurrence.give_back()
