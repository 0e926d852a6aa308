"""Handle LOOKUP, PARTITIONED_METADATA and GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.auth.needs import namespace_operation, topic_operation
from pulsarium.broker.commands.naming import name_of
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.errors import MetadataError, NotAllowedError
from pulsarium.broker.model.topic.java_regex import NotEvaluable
from pulsarium.broker.model.topic.patterns import PatternError, TopicPattern
from pulsarium.broker.model.topic.watchers import SortedNames, hash_of_names
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.special_names import has_system_name
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName

Lookup = pb.CommandLookupTopicResponse
Metadata = pb.CommandPartitionedTopicMetadataResponse
Mode = pb.CommandGetTopicsOfNamespace


@handles(pb.BaseCommand.LOOKUP, needs=topic_operation("LOOKUP"))
def lookup(session: Session, cmd: pb.CommandLookupTopic, trailing: bytes) -> None:
    """Answer with the broker that serves a topic. A lookup creates no topic, and the topic need not exist."""
    broker = session.broker
    reply = Lookup(request_id=cmd.request_id)
    try:
        name = name_of(session, cmd.topic)
        listener = text_of(cmd.advertised_listener_name)
        found = broker.cluster.ownership.find(broker, name, authoritative=cmd.authoritative)
        urls = None if found is None else found.broker.listener(listener)
        if found is None:
            lookup_failed(reply, pb.TopicNotFound, "Namespace not found")
        elif urls is None:
            text = f"the broker do not have {listener} listener"
            lookup_failed(reply, pb.ServiceNotReady, text)
        else:
            reply.response = Lookup.Redirect if found.redirect else Lookup.Connect
            if urls.pulsar:
                reply.brokerServiceUrl = urls.pulsar
            if urls.pulsar_ssl:
                reply.brokerServiceUrlTls = urls.pulsar_ssl
            reply.authoritative = found.authoritative
            # Through a proxy, and with a single broker at a local address, the client keeps its URL: so port
            # mappings and tunnels work, and TLS names fit.
            alone = len(broker.cluster.brokers) == 1
            reply.proxy_through_service_url = session.through_proxy or (alone and urls.is_local)
    except InvalidTopicName as error:
        lookup_failed(reply, pb.InvalidTopicName, f"Invalid topic name: {error}")
    except MetadataError as error:
        lookup_failed(reply, error.code, error.text)
    if reply.response == Lookup.Failed:
        session.note_refusal(pb.BaseCommand.LOOKUP, cmd, reply.error, reply.message)
    session.reply_later(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=reply))


def lookup_failed(reply: Lookup, code: pb.ServerError, text: str) -> None:
    """Make `reply` a failed lookup with this error."""
    reply.response = Lookup.Failed
    reply.error = code
    reply.message = text


@handles(pb.BaseCommand.PARTITIONED_METADATA, needs=topic_operation("LOOKUP"))
def partitioned_metadata(session: Session, cmd: pb.CommandPartitionedTopicMetadata, trailing: bytes) -> None:
    """Answer with the number of partitions, 0 for a topic that is not partitioned or may be created so."""
    reply = Metadata(request_id=cmd.request_id)
    try:
        name = name_of(session, cmd.topic)
    except InvalidTopicName as error:
        metadata_failed(reply, pb.InvalidTopicName, f"Invalid topic name: {error}")
    else:
        create = cmd.metadata_auto_creation_enabled
        known = str(name.namespace_name) in session.broker.metadata.namespaces
        try:
            partitions = session.broker.topics.partitions_for_client(name, create=create) if known else None
        except NotAllowedError as error:
            metadata_failed(reply, pb.ServiceNotReady, error.text)  # as in Pulsar, so that clients try again
        else:
            if partitions is None:
                metadata_failed(reply, pb.TopicNotFound, "Namespace not found" if create and not known else "")
            else:
                reply.response = Metadata.Success
                reply.partitions = partitions
    if reply.response == Metadata.Failed:
        session.note_refusal(pb.BaseCommand.PARTITIONED_METADATA, cmd, reply.error, reply.message)
    answer = pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=reply)
    session.reply_when_kept(cmd.request_id, answer)


def metadata_failed(reply: Metadata, code: pb.ServerError, text: str) -> None:
    """Make `reply` a failed PARTITIONED_METADATA with this error."""
    reply.response = Metadata.Failed
    reply.error = code
    reply.message = text


@handles(pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, needs=namespace_operation("GET_TOPICS"))
def get_topics_of_namespace(session: Session, cmd: pb.CommandGetTopicsOfNamespace, trailing: bytes) -> None:
    """Answer with the topics of a namespace that match the pattern, unless the client's hash is up to date.

    The client filters the topics where the broker does not, or cannot.
    """
    try:
        namespace = NamespaceName.parse(cmd.namespace)
    except InvalidTopicName as error:
        raise CloseConnection(str(error)) from None
    session.gate.handle_in_slices(_answer_with_topics(session, str(namespace), cmd))


def _answer_with_topics(session: Session, namespace: str, cmd: pb.CommandGetTopicsOfNamespace) -> Iterator[None]:
    broker, config = session.broker, session.broker.config
    listing = broker.topics.watchers.listing(namespace)
    names = SortedNames() if cmd.mode == Mode.NON_PERSISTENT else listing.visible
    others: list[str] = []
    if cmd.mode != Mode.PERSISTENT:
        others = broker.topics.names(
            namespace, persistent=False, non_persistent=True, idle=False, hidden=has_system_name
        )
    filtered = bool(
        cmd.HasField("topics_pattern")
        and config.enableBrokerSideSubscriptionPatternEvaluation
        and len(cmd.topics_pattern) <= config.subscriptionPatternMaxLength
    )
    if filtered:
        text, implementation = text_of(cmd.topics_pattern), config.topicsPatternRegexImplementation
        try:
            matching = yield from TopicPattern(text, implementation).select(others)
            if names:
                names = (yield from listing.select(text, implementation)).names
            others = matching
        except PatternError as error:
            session.error(cmd.request_id, pb.MetadataError, f"{error.java}: {error}")
            return
        except NotEvaluable:
            filtered = False
    topics_hash = hash_of_names([*names, *others]) if others else names.hash
    changed = cmd.topics_hash != topics_hash
    reply = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=cmd.request_id,
        topics=[*names, *others] if changed else (),
        filtered=filtered,
        topics_hash=topics_hash,
        changed=changed,
    )
    answer = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=reply)
    session.reply_later(answer)
