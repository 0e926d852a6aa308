"""Handle SEEK and GET_LAST_MESSAGE_ID."""

from __future__ import annotations

from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.last_message import last_message
from pulsarium.broker.session.session import Session
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed


@handles(pb.BaseCommand.SEEK)
def seek(session: Session, cmd: pb.CommandSeek, trailing: bytes) -> None:
    """Move a subscription to a message, inclusive. Its consumers are closed before the answer."""
    request_id = cmd.request_id
    consumer = session.consumers.get(cmd.consumer_id)
    nowhere = not (cmd.HasField("message_id") or cmd.HasField("message_publish_time"))
    if consumer is None or nowhere:
        text = "Message id and message publish time were not present" if nowhere else "Consumer not found"
        session.error(request_id, pb.MetadataError, text)
        return
    subscription = consumer.subscription
    if not isinstance(subscription, PersistentSubscription):
        session.success(request_id)  # no cursor to move
        return
    topic, cursor = subscription.topic, subscription.cursor
    ack_set: list[int] = []
    if cmd.HasField("message_id"):
        target = Position(signed(cmd.message_id.ledgerId), signed(cmd.message_id.entryId))
        if session.broker.config.acknowledgmentAtBatchIndexLevelEnabled:
            ack_set = list(cmd.message_id.ack_set)
    else:
        try:
            target = topic.position_at(signed(cmd.message_publish_time))
        except StorageError as error:
            session.error(request_id, pb.PersistenceError, f"Error when resetting subscription: {error}")
            return

    about = session.concerned(pb.BaseCommand.SEEK, cmd)

    def done(error: BrokerServiceError | None) -> None:
        if error is None:
            session.success(request_id)
        else:
            session.refuse(request_id, error, **about)

    subscription.reset(lambda: cursor.reset(target, ack_set), done)


@handles(pb.BaseCommand.GET_LAST_MESSAGE_ID)
def get_last_message_id(session: Session, cmd: pb.CommandGetLastMessageId, trailing: bytes) -> None:
    """Answer with the last deliverable message and the subscription's mark-delete position."""
    consumer = session.consumers.get(cmd.consumer_id)
    if consumer is None:
        session.error(cmd.request_id, pb.MetadataError, "Consumer not found")
        return
    subscription = consumer.subscription
    if not isinstance(subscription, PersistentSubscription):
        session.error(cmd.request_id, pb.UnknownError, "Failed to recover Transaction Buffer.")
        return
    compacted = consumer.read_compacted
    try:
        last = last_message(
            subscription.topic, read_compacted=compacted, as_buffer=compacted and session.takes_last_entries
        )
    except BrokerServiceError as error:
        session.refuse(cmd.request_id, error)
        return
    mark = subscription.cursor.mark_delete
    answer = session.outgoing.last_message_id(cmd.request_id, last.position, consumer.partition, last.batch_index, mark)
    session.reply_later(answer, last.buffer)
