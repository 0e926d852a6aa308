"""A connection of registered consumers, for tests that look at the controller only."""

from __future__ import annotations

from pulsarium.broker.model.scalable.registrations import Assignment


class Silent:
    """A connection that ignores its assignments."""

    def assigned(self, consumer_id: int, assignment: Assignment) -> None:
        return
