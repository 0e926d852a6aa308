"""Handle WATCH_TOPIC_LIST: tell clients with a pattern about new and deleted topics, in place of their polling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.auth.needs import namespace_operation
from pulsarium.broker.commands.registry import CloseConnection, handles
from pulsarium.broker.model.topic.watchers import PatternError, TopicListWatcher, TopicPattern
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session


@handles(pb.BaseCommand.WATCH_TOPIC_LIST, needs=namespace_operation("GET_TOPICS"))
def watch_topic_list(session: Session, cmd: pb.CommandWatchTopicList, trailing: bytes) -> None:
    """Start a watcher, and answer with the topics that match, unless the client's hash is up to date."""
    broker, watcher_id = session.broker, cmd.watcher_id
    limit, text = broker.config.subscriptionPatternMaxLength, text_of(cmd.topics_pattern)
    try:
        namespace = NamespaceName.parse(cmd.namespace)
    except InvalidTopicName as error:
        raise CloseConnection(str(error)) from None
    length = len(text.rpartition("://")[2])  # without the domain, unlike in GET_TOPICS_OF_NAMESPACE
    if not broker.config.enableBrokerTopicListWatcher or length > limit:
        why = f"Pattern longer than maximum: {limit}" if broker.config.enableBrokerTopicListWatcher else "disabled"
        session.error(cmd.request_id, pb.NotAllowedError, f"Unable to create topic list watcher: {why}")
        return
    watcher = session.watchers.get(watcher_id)
    if watcher is None:
        try:
            pattern = TopicPattern(text)
        except PatternError as error:
            session.error(cmd.request_id, pb.InvalidTopicName, f"Invalid topics pattern: {error}")
            return
        watcher = TopicListWatcher(
            str(namespace),
            pattern,
            broker.topics.names(str(namespace), system=False),
            lambda new, deleted, topics_hash: _tell(session, watcher_id, new, deleted, topics_hash),
        )
        session.watchers[watcher_id] = watcher
        broker.topics.watchers.add(watcher)
    reply = pb.CommandWatchTopicListSuccess(
        request_id=cmd.request_id,
        watcher_id=watcher_id,
        topic=sorted(watcher.names) if cmd.topics_hash != watcher.hash else (),
        topics_hash=watcher.hash,
    )
    session.command(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=reply))


def _tell(session: Session, watcher_id: int, new: list[str], deleted: list[str], topics_hash: str) -> None:
    update = pb.CommandWatchTopicUpdate(
        watcher_id=watcher_id, new_topics=new, deleted_topics=deleted, topics_hash=topics_hash
    )
    session.command(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_UPDATE, watchTopicUpdate=update))


@handles(pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE)
def watch_topic_list_close(session: Session, cmd: pb.CommandWatchTopicListClose, trailing: bytes) -> None:
    """Stop a watcher. An unknown watcher counts as stopped."""
    watcher = session.watchers.pop(cmd.watcher_id, None)
    if watcher is not None:
        session.broker.topics.watchers.remove(watcher)
    session.success(cmd.request_id)
