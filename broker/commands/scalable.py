"""Handle SCALABLE_TOPIC_LOOKUP and SCALABLE_TOPIC_CLOSE: tell clients the layout of a topic, now and after changes."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.commands.naming import DISABLED
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError, TopicNotFoundError
from pulsarium.broker.model.scalable.layout import Layout, Segment
from pulsarium.broker.model.scalable.topics import ScalableTopic, ScalableTopicNotFoundError, scalable_name
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

_T = pb.BaseCommand


class LookupSession:
    """A lookup of a client that stays open: the client gets the layout at once, and after each change.

    A topic that is deleted is not told, as in Pulsar. A new topic of the same name is, and so is a migration.
    """

    def __init__(self, session: Session, session_id: int, name: TopicName) -> None:
        self.name = scalable_name(name)
        self._session = session
        self._id = session_id
        self._topic: ScalableTopic | None = None
        self._closed = False
        self._topics = session.broker.cluster.scalable
        self._topics.observers[self._created] = None

    def watch(self, topic: ScalableTopic) -> None:
        """Tell the client the layout of a topic, now and after changes."""
        self._leave()
        self._topic = topic
        topic.observers[self._changed] = None
        self._changed(topic)

    def watch_after_commit(self, topic: ScalableTopic) -> None:
        """Watch a topic that this lookup may have created, once it is stored."""

        def kept(error: Exception | None) -> None:
            if error is not None:
                _update(self._session, self._id, error=pb.PersistenceError, message=str(error))
            elif self._topic is None and not self._closed:
                self.watch(topic)

        self._session.broker.turn.after_commit(kept)

    def close(self) -> None:
        """Tell the client nothing more."""
        self._closed = True
        self._leave()
        self._topics.observers.pop(self._created, None)

    def _leave(self) -> None:
        if self._topic is not None:
            self._topic.observers.pop(self._changed, None)

    def _created(self, topic: ScalableTopic, exists: bool) -> None:
        if exists and topic.name == self.name:
            self.watch(topic)

    def _changed(self, topic: ScalableTopic) -> None:
        self.tell(dag_of(self._session.broker, topic))

    def tell(self, dag: pb.ScalableTopicDAG) -> None:
        """Send the layout."""
        _update(self._session, self._id, dag=dag, resolved_topic_name=str(self.name))


@handles(_T.SCALABLE_TOPIC_LOOKUP, needs=topic_operation("LOOKUP"))
def lookup(session: Session, cmd: pb.CommandScalableTopicLookup, trailing: bytes) -> None:
    """Open a lookup session. The name may be that of a persistent topic, which is shown as a synthetic layout."""
    session_id = cmd.session_id
    try:
        if not session.broker.config.scalableTopicsEnabled:
            raise NotAllowedError(DISABLED)
        try:
            name = TopicName.parse(cmd.topic)
        except InvalidTopicName as error:
            raise CloseConnection(str(error)) from None
        _check_name(name)
        topic = _find(session, name, create=cmd.create_if_missing)
    except BrokerServiceError as error:
        session.note_refusal(pb.BaseCommand.SCALABLE_TOPIC_LOOKUP, cmd, error.code, error.text)
        _update(session, session_id, error=error.code, message=error.text)
        return
    close_session(session, session_id)
    opened = session.lookups[session_id] = LookupSession(session, session_id, name)
    if topic is None:
        scalable = session.broker.cluster.scalable
        names = [str(each) for each in scalable.legacy_names(name)]
        opened.tell(_dag(Layout.synthetic(names, now_ms=session.broker.clock_of(name).now_ms())))
    else:  # after the commit of a topic that this lookup created
        opened.watch_after_commit(topic)


def _check_name(name: TopicName) -> None:
    if not name.is_persistent:
        raise NotAllowedError("Scalable topics do not support non-persistent:// topics")
    if name.is_partition:
        raise TopicNotFoundError(
            f"Cannot open a scalable-topic lookup for an individual partition: {name}; "
            f"use the base topic name {name.partitioned_name}"
        )
    if name.is_segment:
        raise ScalableTopicNotFoundError(name)


def _find(session: Session, name: TopicName, *, create: bool) -> ScalableTopic | None:
    """Return the topic, or None for a persistent topic that is not scalable."""
    scalable = session.broker.cluster.scalable
    found = scalable.find(name)
    if found is not None or not name.is_scalable:
        return found
    if create and not session.profile.scalable_as_m1 and scalable.may_auto_create(name):
        return scalable.create(name)
    raise ScalableTopicNotFoundError(name)


@handles(_T.SCALABLE_TOPIC_CLOSE)
def close_lookup(session: Session, cmd: pb.CommandScalableTopicClose, trailing: bytes) -> None:
    """Close a lookup session. An unknown one counts as closed, and there is no answer."""
    close_session(session, cmd.session_id)


def close_session(session: Session, session_id: int) -> None:
    """Close a lookup session, if there is one of this id."""
    opened = session.lookups.pop(session_id, None)
    if opened is not None:
        opened.close()


def _update(session: Session, session_id: int, **fields: Any) -> None:
    update = pb.CommandScalableTopicUpdate(session_id=session_id, **fields)
    session.command(pb.BaseCommand(type=_T.SCALABLE_TOPIC_UPDATE, scalableTopicUpdate=update))


def dag_of(broker: Broker, topic: ScalableTopic) -> pb.ScalableTopicDAG:
    """Return the layout of a topic, with the brokers of its active segments and its controller.

    Without a namespace, as in 5.0.1, this broker has the segments.
    """
    dag = _dag(topic.layout)
    profile = broker.profile
    as_5_0_1 = profile.scalable_faults and not profile.scalable_as_m1
    homeless = as_5_0_1 and str(topic.name.namespace_name) not in broker.metadata.namespaces
    for segment in topic.layout.active():
        found = broker if homeless else broker.cluster.ownership.serving(topic.segment_topic(segment))
        urls = None if found is None else found.listener()
        if urls is not None and (urls.pulsar or urls.pulsar_ssl):
            address = dag.segment_brokers.add(segment_id=segment.id, broker_url=urls.pulsar)
            if urls.pulsar_ssl:
                address.broker_url_tls = urls.pulsar_ssl
    if topic.controller is not None:
        urls = topic.controller.listener()
        if urls.pulsar:
            dag.controller_broker_url = urls.pulsar
        if urls.pulsar_ssl:
            dag.controller_broker_url_tls = urls.pulsar_ssl
    return dag


def _dag(layout: Layout) -> pb.ScalableTopicDAG:
    return pb.ScalableTopicDAG(epoch=layout.epoch, segments=map(_segment, layout.segments.values()))


def _segment(segment: Segment) -> pb.SegmentInfoProto:
    info = pb.SegmentInfoProto(
        segment_id=segment.id,
        hash_start=segment.start,
        hash_end=segment.end,
        state=pb.ACTIVE if segment.active else pb.SEALED,
        parent_ids=segment.parents,
        child_ids=segment.children,
        created_at_epoch=segment.created_epoch,
        created_at_ms=segment.created_ms,
        entry_bucket_splits=segment.splits,
    )
    if not segment.active:
        info.sealed_at_epoch, info.sealed_at_ms = segment.sealed_epoch, segment.sealed_ms
    if segment.legacy_topic is not None:
        info.legacy_topic_name = segment.legacy_topic
    return info
