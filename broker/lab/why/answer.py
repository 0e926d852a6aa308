"""Questions about messages, and their answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.numbers import LONG_MAX

CAUGHT_UP: Final = "caught-up"
NOT_LOADED: Final = "the topic is not loaded: no client has used it since the broker started, or since it was unloaded"

_ID = re.compile(r"\(?(-?\d+)[:,] ?(-?\d+)(?:[:,] ?(-?\d+))?(?:[:,] ?(-?\d+))?\)?")


class WhyError(ValueError):
    """A question that cannot be answered. The text says what to ask instead."""


class NotThere(WhyError):
    """The topic or the subscription does not exist."""


@dataclass(frozen=True, slots=True)
class Why:
    """An answer: `reason` is a name for programs, `text` a sentence, and `details` are the facts behind it, as JSON."""

    reason: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class AskedMessage(NamedTuple):
    """The id of an entry, or of a message in a batch."""

    position: Position
    batch_index: int = -1
    partition: int = -1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse LEDGER:ENTRY, LEDGER:ENTRY:BATCH, LEDGER:ENTRY:PARTITION:BATCH or a client's form.

        Clients print (LEDGER,ENTRY,PARTITION,BATCH). Raise `WhyError` for another text.
        """
        match = _ID.fullmatch(text.strip())
        numbers = [int(each) for each in match.groups() if each is not None] if match else []
        if not numbers or any(abs(number) > LONG_MAX for number in numbers):
            raise WhyError(
                f"{text!r} is no message id; write LEDGER:ENTRY, or LEDGER:ENTRY:BATCH for a message of a batch"
            )
        position = Position(numbers[0], numbers[1])
        if len(numbers) == 4:
            return cls(position, numbers[3], numbers[2])
        return cls(position, *numbers[2:])

    def __str__(self) -> str:
        return str(self.position) if self.batch_index < 0 else f"{self.position}:{self.batch_index}"
