"""Questions of tests about the messages of the usual topic."""

from __future__ import annotations

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import Why
from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import TOPIC, Bed, plain


def why(bed: Bed, position: Position | None = None, *, index: int | None = None, name: str = "sub") -> Why:
    lab = bed.broker.cluster.attached(Lab)
    asked = None if position is None else f"{position}" if index is None else f"{position}:{index}"
    return lab.why(TOPIC, name, asked)


def entries(count: int) -> list[bytes]:
    return [plain(b"%d" % number) for number in range(count)]
