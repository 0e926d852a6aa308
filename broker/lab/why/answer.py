"""What is answered, and what is asked about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from pulsarium.broker.model.ledger.position import Position

_ID = re.compile(r"\(?(-?\d+)[:,] ?(-?\d+)(?:[:,] ?(-?\d+))?(?:[:,] ?(-?\d+))?\)?")


class WhyError(ValueError):
    """What was asked cannot be answered; the text says what to ask instead."""


class NotThere(WhyError):
    """There is no such topic or subscription."""


@dataclass(frozen=True, slots=True)
class Why:
    """`reason` is a name for programs, `text` a sentence for people, `details` are the facts behind it, as in JSON."""

    reason: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class MessageId(NamedTuple):
    """Of an entry, or of a message in it."""

    position: Position
    batch_index: int = -1
    partition: int = -1

    @classmethod
    def parse(cls, text: str) -> Self:
        """LEDGER:ENTRY, LEDGER:ENTRY:BATCH, LEDGER:ENTRY:PARTITION:BATCH; or (LEDGER,ENTRY,PARTITION,BATCH), as clients
        show it. Raises WhyError."""
        match = _ID.fullmatch(text.strip())
        numbers = [int(each) for each in match.groups() if each is not None] if match else []
        if not numbers or any(abs(number) >= 2**63 for number in numbers):
            raise WhyError(
                f"{text!r} is no message id; say LEDGER:ENTRY, or LEDGER:ENTRY:BATCH for a message of a batch"
            )
        position = Position(numbers[0], numbers[1])
        if len(numbers) == 4:
            return cls(position, numbers[3], numbers[2])
        return cls(position, *numbers[2:])

    def __str__(self) -> str:
        return str(self.position) if self.batch_index < 0 else f"{self.position}:{self.batch_index}"
