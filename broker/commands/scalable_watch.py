"""Handle WATCH_SCALABLE_TOPICS: tell clients which scalable topics a namespace has, now and after changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsarium.broker.auth.needs import namespace_operation
from pulsarium.broker.clock import Timer
from pulsarium.broker.commands.naming import DISABLED
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.model.topic.watchers import hash_of_names
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName

GATHERING: Final = 0.05  # seconds in which changes become one update


class ScalableTopicsWatch:
    """A watch of a client: the topics of a namespace that have all of some properties.

    Changes that follow each other closely come as one update. A topic that was created and deleted meanwhile is not
    named.
    """

    def __init__(self, session: Session, watch_id: int, namespace: str, properties: Mapping[str, str]) -> None:
        self._session = session
        self._id = watch_id
        self._prefix = f"topic://{namespace}/"
        self._properties = properties
        self._topics = session.broker.cluster.scalable
        self._told = self._topics.names(namespace, properties)
        self._changed: dict[str, bool] = {}
        self._timer: Timer | None = None
        self._topics.observers[self._change] = None

    def tell_all(self, current_hash: str) -> None:
        """Send the names of all topics, unless the client has them."""
        if current_hash != hash_of_names(self._told):
            _update(self._session, self._id, snapshot=pb.ScalableTopicsSnapshot(topics=self._told))

    def close(self) -> None:
        """Tell the client nothing more."""
        self._topics.observers.pop(self._change, None)
        if self._timer is not None:
            self._timer.cancel()

    def _change(self, topic: ScalableTopic, exists: bool) -> None:
        name = str(topic.name)
        if not name.startswith(self._prefix) or not self._properties.items() <= topic.properties.items():
            return
        if self._changed.get(name) is (not exists):
            del self._changed[name]
        else:
            self._changed[name] = exists
        if self._timer is None:
            self._timer = self._session.broker.clock.call_later(GATHERING, self._tell_changes)

    def _tell_changes(self) -> None:
        self._timer = None
        changed, self._changed = sorted(self._changed.items()), {}
        if changed:
            added = [name for name, exists in changed if exists]
            removed = [name for name, exists in changed if not exists]
            _update(self._session, self._id, diff=pb.ScalableTopicsDiff(added=added, removed=removed))


@handles(pb.BaseCommand.WATCH_SCALABLE_TOPICS, needs=namespace_operation("GET_TOPICS"))
def watch_scalable_topics(session: Session, cmd: pb.CommandWatchScalableTopics, trailing: bytes) -> None:
    """Open a watch, which replaces one of its id. A namespace that does not exist has no topics."""
    watch_id = cmd.watch_id
    if not session.broker.config.scalableTopicsEnabled:
        _update(session, watch_id, error=pb.NotAllowedError, message=DISABLED)
        return
    try:
        namespace = NamespaceName.parse(cmd.namespace)
    except InvalidTopicName:
        _update(session, watch_id, error=pb.InvalidTopicName, message=f"Invalid namespace: {text_of(cmd.namespace)}")
        return
    _close(session, watch_id)
    properties = {text_of(each.key): text_of(each.value) for each in cmd.property_filters}
    watch = session.topic_watches[watch_id] = ScalableTopicsWatch(session, watch_id, str(namespace), properties)
    watch.tell_all(cmd.current_hash)


@handles(pb.BaseCommand.WATCH_SCALABLE_TOPICS_CLOSE)
def watch_scalable_topics_close(session: Session, cmd: pb.CommandWatchScalableTopicsClose, trailing: bytes) -> None:
    """Close a watch. An unknown watch counts as closed, and there is no answer."""
    _close(session, cmd.watch_id)


def _close(session: Session, watch_id: int) -> None:
    watch = session.topic_watches.pop(watch_id, None)
    if watch is not None:
        watch.close()


def _update(session: Session, watch_id: int, **fields: Any) -> None:
    update = pb.CommandWatchScalableTopicsUpdate(watch_id=watch_id, **fields)
    base = pb.BaseCommand(type=pb.BaseCommand.WATCH_SCALABLE_TOPICS_UPDATE, watchScalableTopicsUpdate=update)
    session.command(base)
