"""What a transaction may be told when it begins, who it is, and how far it got."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pulsarium.client.errors import InvalidConfiguration

_MOST_SECONDS = 2**53 / 1000  # the protocol has room for as many milliseconds, and a float counts them


class TransactionState(enum.Enum):
    """As Java clients have them."""

    OPEN = "open"
    """Messages can be sent and acknowledged in it."""
    COMMITTING = "committing"
    """Nobody knows yet whether it is committed: `commit` may be called again."""
    ABORTING = "aborting"
    """The same of `abort`."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    ERROR = "error"
    """The coordinator does not know it, or not in this state."""
    TIME_OUT = "time out"
    """Its time was over before it was committed: the broker aborts it."""


@dataclass(frozen=True, kw_only=True)
class TransactionOptions:
    """What `transaction` and `begin_transaction` take."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not 0.001 <= self.timeout <= _MOST_SECONDS:
            raise InvalidConfiguration(f"a transaction cannot have {self.timeout:g} s")

    @property
    def milliseconds(self) -> int:
        """As the protocol counts."""
        return int(self.timeout * 1000)
