"""What a connection had, let go when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pulsarium.broker.logs import Log

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

log = Log("session")


def let_go(session: Session) -> None:
    """The model forgets everything that a connection had."""
    for forget in _all_of(session):
        try:
            forget()
        except Exception as error:  # the others are to be let go all the same
            log.error("a connection could not let go of something", exception=error, peer=session.address)


def _all_of(session: Session) -> Iterator[Callable[[], object]]:
    consumers, session.consumers = session.consumers, {}
    producers = [*session.producers.values(), *session.waiting_producers.values()]
    session.producers, session.waiting_producers = {}, {}
    for pending in list(session.pending_consumers.values()):
        yield pending.cancel
    for consumer in consumers.values():
        yield partial(consumer.subscription.remove_consumer, consumer)
    for producer in producers:
        yield partial(producer.topic.producers.remove, producer)
    for watcher in session.watchers.values():
        yield partial(session.broker.topics.watchers.remove, watcher)
