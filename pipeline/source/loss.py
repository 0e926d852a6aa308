"""Data that is gone before it was read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.position import Position

_logger = logging.getLogger(__name__)

_HINT = (
    "Retention, TTL, a backlog quota or somebody's skip took it, or the topic was deleted. "
    '.option("failOnDataLoss", "false") goes on without it'
)


class DataLoss(RuntimeError):
    """Messages that were to be read are gone."""


class LossCheck:
    """Says it, by an error or in the log."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail

    def ledgers(
        self, starts: Mapping[str, Position], found: Mapping[str, Ledgers], subscription: str | None = None
    ) -> None:
        """DataLoss, or a warning, for topics whose ledgers do not reach back to the start any more."""
        lost = [
            f"{topic} from {starts[topic]} on, of which {first} is the first that is left"
            for topic, ledgers in found.items()
            if (first := ledgers.lost_from(starts[topic], subscription)) is not None
        ]
        self._say(lost)

    def topics(self, gone: Iterable[str], starts: Mapping[str, Position]) -> None:
        """DataLoss, or a warning, for topics that are not there any more."""
        self._say([f"all of {topic} from {starts[topic]} on: there is no such topic any more" for topic in gone])

    def _say(self, lost: list[str]) -> None:
        if not lost:
            return
        text = f"data was lost: {'; '.join(lost)}. {_HINT}"
        if self._fail:
            raise DataLoss(text)
        _logger.warning("%s", text)
