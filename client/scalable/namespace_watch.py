"""Follow the scalable topics of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.routes import SessionUpdate
from pulsarium.client.errors import PulsarError, error_of
from pulsarium.client.scalable.seat import LastingSession
from pulsarium.client.topics import bounded
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

UPDATE = pb.BaseCommand.WATCH_SCALABLE_TOPICS_UPDATE


class NamespaceWatch(LastingSession):
    """A watch that keeps the names of the topics that have all properties. A lost watch is opened again."""

    def __init__(
        self,
        brokers: Brokers,
        namespace: str,
        properties: Mapping[str, str],
        on_topics: Callable[[frozenset[str]], None],
        on_failed: Callable[[PulsarError], None],
    ) -> None:
        """Take the handlers.

        Args:
            brokers: The brokers of the client.
            namespace: The namespace, `tenant/namespace`.
            properties: The properties that a topic must have.
            on_topics: Called with the names of all topics at each change. Must not block.
            on_failed: Called when the watch ends for good, as for `Link`.
        """
        super().__init__(brokers, namespace, UPDATE, _close, on_failed, "watch of")
        self.topics: frozenset[str] = frozenset()
        """The names of the topics at present."""
        self._namespace = namespace
        self._properties = properties
        self._on_topics = on_topics

    async def open(self) -> frozenset[str]:
        """Open the watch, and return the topics. Raise the broker's refusal."""
        await self._link.start()
        return self.topics

    # ---- for the connection

    def on_update(self, update: SessionUpdate) -> None:
        assert isinstance(update, pb.CommandWatchScalableTopicsUpdate)
        if update.HasField("error"):
            self._seat.refused(error_of(update.error, text_of(update.message)))
            return
        if update.HasField("diff"):
            topics = self.topics - {*map(text_of, update.diff.removed)} | {*map(text_of, update.diff.added)}
        else:
            topics = frozenset(map(text_of, update.snapshot.topics))
        try:
            bounded(len(topics), self._namespace)
        except PulsarError as error:
            self._seat.refused(error)
            return
        self.topics = topics
        self._on_topics(topics)
        self._seat.accepted()

    def _request(self, number: int) -> pb.BaseCommand:
        filters = [pb.KeyValue(key=key, value=value) for key, value in self._properties.items()]
        watch = pb.CommandWatchScalableTopics(watch_id=number, namespace=self._namespace, property_filters=filters)
        return pb.BaseCommand(type=pb.BaseCommand.WATCH_SCALABLE_TOPICS, watchScalableTopics=watch)


def _close(number: int) -> pb.BaseCommand:
    close = pb.CommandWatchScalableTopicsClose(watch_id=number)
    return pb.BaseCommand(type=pb.BaseCommand.WATCH_SCALABLE_TOPICS_CLOSE, watchScalableTopicsClose=close)
