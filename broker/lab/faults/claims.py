"""Commands whose answers a rule waits for: what stage "after" remembers of one connection."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.broker.lab.faults.answers import Key, key_of_answer, key_of_command
from pulsarium.broker.lab.faults.passing import Passing
from pulsarium.broker.lab.faults.rule import Rule

MOST = 10_000  # keys; some commands are never answered, as an ACK of a consumer that is gone


class Claim(NamedTuple):
    rule: Rule
    command: Passing


class Claims:
    """In the order in which they came; several commands may have one id."""

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Claim]] = {}

    def add(self, rule: Rule, command: Passing) -> None:
        """The answer to this command is the rule's."""
        key = key_of_command(command)
        assert key is not None
        self._waiting.setdefault(key, []).append(Claim(rule, command))
        if len(self._waiting) > MOST:
            self._give_back(self._waiting.pop(next(iter(self._waiting))))

    def answered(self, answer: Passing) -> Claim | None:
        """Whose answer this is; it is nobody's the next time."""
        key = key_of_answer(answer) if self._waiting else None
        claims = None if key is None else self._waiting.get(key)
        if key is None or claims is None:
            return None
        claim = claims.pop(0)
        if not claims:
            del self._waiting[key]
        return claim

    @property
    def waiting(self) -> bool:
        """Whether any answer is waited for."""
        return bool(self._waiting)

    def forget(self, rule: Rule) -> None:
        """It was removed."""
        left = {key: [claim for claim in claims if claim.rule is not rule] for key, claims in self._waiting.items()}
        self._waiting = {key: claims for key, claims in left.items() if claims}

    def clear(self) -> None:
        """No answer comes any more: another command may be struck instead."""
        for claims in self._waiting.values():
            self._give_back(claims)
        self._waiting.clear()

    @staticmethod
    def _give_back(claims: list[Claim]) -> None:
        for claim in claims:
            claim.rule.occurrence.give_back()
