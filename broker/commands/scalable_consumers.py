"""Handle SCALABLE_TOPIC_SUBSCRIBE and SCALABLE_TOPIC_UNSUBSCRIBE: consumers that the controller of a topic assigns."""

from __future__ import annotations

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.commands.naming import DISABLED, InvalidNameError
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError
from pulsarium.broker.model.scalable.registrations import Assignment
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_T = pb.BaseCommand


class ControllerError(BrokerServiceError):
    """A topic that cannot have a controller."""


class RegisteredConsumer:
    """A consumer that a connection has registered."""

    def __init__(self, session: Session, topic: ScalableTopic, subscription: str, name: str) -> None:
        self.topic = topic
        self.subscription = subscription
        self.name = name
        self._session = session
        self._controllers = session.broker.cluster.controllers

    def assigned(self, consumer_id: int, assignment: Assignment) -> None:
        """Send SCALABLE_TOPIC_ASSIGNMENT_UPDATE."""
        update = pb.CommandScalableTopicAssignmentUpdate(
            consumer_id=consumer_id, assignment=_assignment(self.topic, assignment)
        )
        self._session.command(
            pb.BaseCommand(type=_T.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, scalableTopicAssignmentUpdate=update)
        )

    def close(self) -> None:
        """Let the grace period begin, because the connection has ended."""
        self._controllers.disconnected(self.topic.name, self.subscription, self.name, self)

    def leave(self) -> None:
        """Remove the registration, because the client wants so."""
        controller = self._controllers.find(self.topic)
        if controller is not None:
            controller.registrations.leave(self.subscription, self.name)


@handles(_T.SCALABLE_TOPIC_SUBSCRIBE, needs=topic_operation("SUBSCRIBE"))
def subscribe(session: Session, cmd: pb.CommandScalableTopicSubscribe, trailing: bytes) -> None:
    """Register a consumer with the controller of a topic, and answer with the segments of the consumer."""
    subscription, name, consumer_id = text_of(cmd.subscription), text_of(cmd.consumer_name), cmd.consumer_id
    ordered = cmd.consumer_type == pb.STREAM
    try:
        topic = _topic(session, cmd.topic)
        controller = session.broker.cluster.controllers.lead(topic, session.broker)
        consumer = RegisteredConsumer(session, topic, subscription, name)
        assignment = controller.registrations.join(subscription, name, consumer, consumer_id, ordered=ordered)
    except BrokerServiceError as error:
        session.note_refusal(pb.BaseCommand.SCALABLE_TOPIC_SUBSCRIBE, cmd, error.code, error.text)
        answer(session, cmd.request_id, error=error.code, message=error.text)
        return
    session.registered[consumer_id] = consumer
    found = _assignment(topic, assignment)

    def kept(error: Exception | None) -> None:
        if error is None:
            answer(session, cmd.request_id, assignment=found)
        else:
            answer(session, cmd.request_id, error=pb.PersistenceError, message=str(error))

    session.broker.turn.after_commit(kept)


def _topic(session: Session, text: str) -> ScalableTopic:
    """Return the scalable topic of a name, or raise the error for the client."""
    if not session.broker.config.scalableTopicsEnabled:
        raise NotAllowedError(DISABLED)
    try:
        name = TopicName.parse(text)
    except InvalidTopicName:
        raise InvalidNameError(f"Invalid topic name: {text}") from None
    found = session.broker.cluster.scalable.find(name) if name.is_scalable else None
    if found is None:
        raise ControllerError(f"Failed to initialize controller for {name}")
    return found


def answer(session: Session, request_id: int, **fields: object) -> None:
    """Send SCALABLE_TOPIC_SUBSCRIBE_RESPONSE."""
    response = pb.CommandScalableTopicSubscribeResponse(request_id=request_id, **fields)  # type: ignore[arg-type]
    session.command(pb.BaseCommand(type=_T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, scalableTopicSubscribeResponse=response))


def _assignment(topic: ScalableTopic, assignment: Assignment) -> pb.ScalableConsumerAssignment:
    found = pb.ScalableConsumerAssignment(layout_epoch=assignment.epoch)
    for segment, buckets in assignment.placed:
        found.segments.add(
            segment_id=segment.id,
            hash_start=segment.start,
            hash_end=segment.end,
            segment_topic=str(topic.assigned_name(segment)),
            bucket_ranges=[pb.IntRange(start=start, end=end) for start, end in buckets],
        )
    return found


@handles(_T.SCALABLE_TOPIC_UNSUBSCRIBE)
def unsubscribe(session: Session, cmd: pb.CommandScalableTopicUnsubscribe, trailing: bytes) -> None:
    """Remove the registration of a consumer. An unknown consumer counts as removed."""
    if not session.broker.config.scalableTopicsEnabled:
        session.error(cmd.request_id, pb.NotAllowedError, DISABLED)
        return
    consumer = session.registered.pop(cmd.consumer_id, None)
    if consumer is not None:
        consumer.leave()
    session.reply_when_kept(
        cmd.request_id, pb.BaseCommand(type=_T.SUCCESS, success=pb.CommandSuccess(request_id=cmd.request_id))
    )
