"""Handle PRODUCER, SEND and CLOSE_PRODUCER."""

from __future__ import annotations

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.commands.naming import check_metadata, parse_name, texts_of
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.commands.schema import judged
from pulsarium.broker.commands.transaction import join
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError, OwnerMustAnswerError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.schema.data import SchemaData, SchemaError
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.joining import of_producer
from pulsarium.broker.model.topic.producers import ProducerOptions
from pulsarium.broker.model.topic.shadow import NOT_A_SHADOW
from pulsarium.broker.model.transaction.transaction import TransactionPart
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import NO_SEQUENCE, signed
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

log = PartLog("producer")


@handles(pb.BaseCommand.PRODUCER, needs=topic_operation("PRODUCE"))
def producer(session: Session, cmd: pb.CommandProducer, trailing: bytes) -> None:
    """Create a producer. The producer's id is taken at once; the reply follows the commit."""
    if cmd.HasField("schema"):
        judged(session, cmd.topic, cmd.schema, lambda schema: _create(session, cmd, schema))
    else:
        _create(session, cmd, None)


def _create(session: Session, cmd: pb.CommandProducer, schema: SchemaData | None) -> None:
    request_id, producer_id = cmd.request_id, cmd.producer_id
    try:
        name = parse_name(session, cmd.topic)
    except BrokerServiceError as error:
        session.refuse(request_id, error)
        return
    present = session.producers.get(producer_id)
    if present is not None:  # a repeated request gets the same answer, whatever it asks for
        session.producer_success(request_id, present.name, schema_version=present.schema_version)
        return
    if producer_id in session.pending_producers or producer_id in session.waiting_producers:
        session.error(request_id, pb.ServiceNotReady, "Producer is already present on the connection")
        return
    try:
        check_metadata(cmd.metadata, session.broker.config.maxConsumerMetadataSize)
        topic, schema_version = _topic(session, name, cmd, schema)
    except SchemaError as error:
        session.error(request_id, error.code, error.java_text, **error.about)
        return
    except BrokerServiceError as error:
        session.refuse(request_id, error)
        return
    if topic.moved_to is not None:
        session.close_producer(producer_id, topic.moved_to)
        return
    options = ProducerOptions(
        producer_id=producer_id,
        request_id=request_id,
        name=text_of(cmd.producer_name) or session.broker.cluster.next_producer_name(),
        encrypted=cmd.encrypted,
        access_mode=cmd.producer_access_mode,
        topic_epoch=signed(cmd.topic_epoch) if cmd.HasField("topic_epoch") else None,
        schema_version=schema_version,
        metadata=texts_of(cmd.metadata),
    )
    session.pending_producers.add(producer_id)
    _add(session, topic, options)


def _topic(
    session: Session, name: TopicName, cmd: pb.CommandProducer, schema: SchemaData | None
) -> tuple[Topic, bytes]:
    """Return the topic, ready for the producer, and the version of its schema. Check in Pulsar's order."""
    topic = session.broker.find_or_create(name, create=True, absent=f"Topic not found {name}")
    topic.check_producer(text_of(cmd.producer_name), encrypted=cmd.encrypted)
    schema_version = of_producer(session.broker.schemas, topic, schema)
    initial = text_of(cmd.initial_subscription_name)
    if initial:
        topic.make_initial(initial)
    return topic, schema_version


def _add(session: Session, topic: Topic, options: ProducerOptions) -> None:
    try:
        added, ready = topic.add_producer(session, options)
    except OwnerMustAnswerError as owned:
        refusal = owned.refusal
        owned.owner.check_liveness(
            lambda alive: _refused(session, topic, options, refusal) if alive else _add(session, topic, options)
        )
        return
    except BrokerServiceError as error:
        _refused(session, topic, options, error)
        return

    def kept(error: Exception | None) -> None:
        session.pending_producers.discard(options.producer_id)
        if session.closed:
            topic.producers.remove(added)
            return
        if error is not None:
            topic.producers.remove(added)
            session.not_kept(options.request_id, error, command="PRODUCER", **added.about)
            return
        if added.closed:  # the topic was unloaded, or the producer fenced
            text = "Topic is temporarily unavailable"
            session.error(options.request_id, pb.ServiceNotReady, text, command="PRODUCER", **added.about)
            return
        if session.producers.get(options.producer_id) is added:
            return  # it waited; its turn came before the commit, and it was told
        if ready:
            session.producers[options.producer_id] = added
        else:
            session.waiting_producers[options.producer_id] = added
        log.info("producer opened", peer=session, producer=added.name, topic=topic.name)
        session.producer_success(
            options.request_id,
            added.name,
            last_sequence_id=added.last_sequence_id,
            topic_epoch=added.topic_epoch if ready else None,
            ready=ready,
            schema_version=added.schema_version,
        )

    session.broker.turn.after_commit(kept)


def _refused(session: Session, topic: Topic, options: ProducerOptions, error: BrokerServiceError) -> None:
    session.pending_producers.discard(options.producer_id)
    if not session.closed:
        about = {"command": "PRODUCER", "topic": str(topic.name), "producer": options.name, **error.about}
        session.error(options.request_id, error.code, error.java_text, **about)


@handles(pb.BaseCommand.SEND)
def send(session: Session, cmd: pb.CommandSend, entry: bytes) -> None:
    """Publish an entry. The broker checks only the entry's checksum."""
    publisher = session.producers.get(cmd.producer_id)
    if publisher is None:
        if session.late_sends.are_dropped(cmd.producer_id):
            return
        raise CloseConnection(f"SEND for unknown producer {cmd.producer_id}")
    sequence_id, highest = cmd.sequence_id, cmd.highest_sequence_id
    if highest < sequence_id or signed(highest) < signed(sequence_id):
        highest = NO_SEQUENCE
    session.gate.publish_started(1)
    pending = PendingPublish(
        publisher, entry, sequence_id, highest, cmd.num_messages, cmd.is_chunk, is_marker=cmd.marker
    )
    if cmd.HasField("txnid_most_bits") and cmd.HasField("txnid_least_bits"):
        if session.profile.own_faults_close and not publisher.topic.name.is_persistent:
            raise CloseConnection("SEND in a transaction to a non-persistent topic")
        pending.txn = TxnId(cmd.txnid_most_bits, cmd.txnid_least_bits)
        pending.highest_sequence_id = cmd.highest_sequence_id  # unchanged, because Pulsar answers so
        if publisher.topic.name.is_segment:
            try:
                join(session, pending.txn, TransactionPart(str(publisher.topic.name)))
            except NotAllowedError as error:
                publisher.refuse(pending, error.code, error.text, **error.about)
                return
    elif cmd.HasField("message_id") and not publisher.topic.takes_message_ids:
        pending.highest_sequence_id = 0
        publisher.refuse(pending, pb.NotAllowedError, NOT_A_SHADOW)
        return
    publisher.publish(pending)


@handles(pb.BaseCommand.CLOSE_PRODUCER)
def close_producer(session: Session, cmd: pb.CommandCloseProducer, trailing: bytes) -> None:
    """Close a producer once its messages are answered. An unknown producer counts as closed."""
    request_id = cmd.request_id
    closed = session.producers.pop(cmd.producer_id, None) or session.waiting_producers.pop(cmd.producer_id, None)
    if closed is None:
        session.success(request_id)
        return
    topic = closed.topic

    def answered(error: Exception | None) -> None:
        log.info("producer closed", peer=session, producer=closed.name, topic=topic.name)
        session.success(request_id)

    topic.producers.remove(closed)
    session.broker.turn.after_commit(answered)
