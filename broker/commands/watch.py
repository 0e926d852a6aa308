"""Handle WATCH_TOPIC_LIST: tell clients with a pattern about new and deleted topics, in place of their polling."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from pulsarium.broker.auth.needs import namespace_operation
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.topic.java_regex import NotEvaluable
from pulsarium.broker.model.topic.patterns import PatternError, WrongDomain, without_domain
from pulsarium.broker.model.topic.watchers import TopicListWatcher
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName

log = PartLog("watch")

_UNABLE = "Unable to create topic list watcher: "


@handles(pb.BaseCommand.WATCH_TOPIC_LIST, needs=namespace_operation("GET_TOPICS"))
def watch_topic_list(session: Session, cmd: pb.CommandWatchTopicList, trailing: bytes) -> None:
    """Start a watcher, and answer with the topics that match, unless the client's hash is up to date."""
    try:
        namespace = NamespaceName.parse(cmd.namespace)
    except InvalidTopicName as error:
        raise CloseConnection(str(error)) from None
    session.gate.handle_in_slices(_watch(session, str(namespace), cmd))


def _watch(session: Session, namespace: str, cmd: pb.CommandWatchTopicList) -> Iterator[None]:
    watcher_id = cmd.watcher_id
    watcher = session.watchers.get(watcher_id)
    if watcher is None:
        try:
            watcher = yield from _watcher(session, cmd, namespace)
        except WrongDomain:
            text = "Exception occurred while trying to handle command WatchTopicList"
            session.error(cmd.request_id, pb.AuthorizationError, text)
            return
        except PatternError as error:
            session.error(cmd.request_id, pb.InvalidTopicName, f"Invalid topics pattern: {error}")
            return
        except NotAllowedError as error:
            session.error(cmd.request_id, error.code, error.text)
            return
        session.watchers[watcher_id] = watcher
    names = watcher.matching.names
    reply = pb.CommandWatchTopicListSuccess(
        request_id=cmd.request_id,
        watcher_id=watcher_id,
        topic=names if cmd.topics_hash != names.hash else (),
        topics_hash=names.hash,
    )
    session.command(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=reply))


def _watcher(
    session: Session, cmd: pb.CommandWatchTopicList, namespace: str
) -> Generator[None, None, TopicListWatcher]:
    """Return a new watcher.

    Raise `NotAllowedError` for a pattern that the broker does not evaluate: clients do not filter what a watcher
    tells, and look for topics now and then instead.
    """
    broker, config, watcher_id = session.broker, session.broker.config, cmd.watcher_id
    pattern, longest = without_domain(text_of(cmd.topics_pattern)), config.subscriptionPatternMaxLength
    if not config.enableBrokerSideSubscriptionPatternEvaluation:
        raise NotAllowedError(f"{_UNABLE}Evaluating subscription patterns is disabled.")
    if len(pattern) > longest:  # without the domain, unlike in GET_TOPICS_OF_NAMESPACE
        raise NotAllowedError(f"{_UNABLE}Pattern longer than maximum: {longest}")
    try:
        return (
            yield from broker.topics.watchers.watch(
                namespace,
                pattern,
                config.topicsPatternRegexImplementation,
                lambda new, deleted, topics_hash: _tell(session, watcher_id, new, deleted, topics_hash),
            )
        )
    except NotEvaluable:
        log.info("a client has no topic list watcher: its pattern needs backtracking", peer=session, pattern=pattern)
        raise NotAllowedError(f"{_UNABLE}Evaluating subscription patterns is disabled.") from None


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
