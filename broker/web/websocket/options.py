"""Paths and queries of the WebSocket API: the topic, the subscription, and the options of each kind of socket.

Errors have the status and the text that Pulsar's own service answers in place of an upgrade.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_plus

from pulsarium.broker.config.keys import SUBSCRIPTION_TYPES
from pulsarium.broker.model.topic.java_regex import NotEvaluable
from pulsarium.broker.model.topic.patterns import JDK, PatternError, expression
from pulsarium.broker.web.websocket.java import decode_base64
from pulsarium.proto.errors import InvalidMessageId, InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.numbers import parse_number
from pulsarium.proto.special_names import DEAD_LETTERS
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, TopicName

LARGEST_QUEUE: Final = 1000
SHORTEST_ACK_TIMEOUT: Final = 1000  # milliseconds
MODES: Final = ("Durable", "NonDurable")
POSITIONS: Final = ("Latest", "Earliest")
ROUTING_MODES: Final = ("SinglePartition", "RoundRobinPartition", "CustomPartition")
HASHING_SCHEMES: Final = ("JavaStringHash", "Murmur3_32Hash")
COMPRESSIONS: Final = tuple(pb.CompressionType.keys())
CRYPTO_ACTIONS: Final = ("FAIL", "DISCARD", "CONSUME")
NO_KEY_READER: Final = "Can't add encryption key without configuring cryptoKeyReaderFactoryClassName"
Query = Mapping[str, str]


class RefusedUpgrade(Exception):
    """Error for an upgrade that the broker refuses with this HTTP status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class WrongOption(RefusedUpgrade):
    """An option of the query that Pulsar's client does not take: 400."""

    def __init__(self, text: str) -> None:
        super().__init__(400, f"Invalid query params: {text}")


class WrongPath(RefusedUpgrade):
    """A path without a valid topic.

    Pulsar answers 500 with the Java exception. Profiles that do not show its faults answer 400 with the same text.
    """

    def __init__(self, text: str = "", java: str = "IllegalArgumentException") -> None:
        exception = f"java.lang.RuntimeException: java.lang.{java}"
        super().__init__(500, f"{exception}: {text}" if text else exception)


class SocketTopics(NamedTuple):
    """The topics of a socket: one, several, or those that match a pattern. `subscription` is "" for other sockets."""

    topics: Sequence[TopicName]
    pattern: str = ""
    subscription: str = ""


def of_topic(path: str) -> SocketTopics:
    """Return the topic of /ws/v2/KIND/DOMAIN/TENANT/NAMESPACE/TOPIC, and the subscription behind a consumer's."""
    parts = path.split("/")
    consumes = parts[3] == "consumer"
    if len(parts) < 8 or (len(parts) > 8 and not consumes):
        raise WrongPath("Invalid topic name format")
    if parts[4] not in (PERSISTENT, NON_PERSISTENT):
        raise WrongPath
    topic = _topic("{}://{}/{}/{}".format(parts[4], *map(unquote_plus, parts[5:8])))
    if not consumes:
        return SocketTopics((topic,))
    if len(parts) != 9:
        raise WrongOption("Invalid topic name format")
    return SocketTopics((topic,), subscription=_subscription(parts[-1]))


def of_topics(path: str, query: Query) -> SocketTopics:
    """Return the topics of /ws/v3/consumer/SUBSCRIPTION, which the query names."""
    parts = path.split("/")
    pattern, names = query.get("topicsPattern"), query.get("topics")
    if pattern is None and names is None:
        raise WrongPath("Should set topics or topicsPattern")
    if pattern is not None and names is not None:
        raise WrongPath("Topics must be null when use topicsPattern")
    topics = [] if names is None else [_topic(name) for name in names.split(",")]
    subscription = _subscription(parts[4] if len(parts) > 4 else "")
    if pattern:
        try:
            expression(pattern, JDK)  # with its domain, as in Java's client
        except PatternError as error:
            raise WrongOption(str(error)) from None
        except NotEvaluable:
            raise WrongOption("The topicsPattern needs backtracking, such as a back reference") from None
    return SocketTopics(topics, pattern or "", subscription)


def _topic(text: str) -> TopicName:
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise WrongPath(str(error)) from None


def _subscription(text: str) -> str:
    if not text:
        raise WrongOption("Empty subscription name")
    return unquote_plus(text)


class EncryptionKey(NamedTuple):
    """A data key that the producer's client encrypted, with its name and its metadata."""

    name: str
    value: bytes
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """Options of a producer. Times are in seconds."""

    name: str = ""
    initial_sequence_id: int | None = None
    murmur3: bool = False
    round_robin: bool = False
    send_timeout: float = 30.0  # 0: none
    batching: bool = False
    batch_messages: int = 1000
    batch_delay: float = 0.001
    most_pending: int = 0  # 0: no limit
    compression: pb.CompressionType = pb.NONE
    keys: Sequence[EncryptionKey] = ()


def producer_options(query: Query) -> ProducerOptions:
    """Return the options of a producer. Raise `RefusedUpgrade`."""
    _check_name(query, "producerName")
    keys = _encryption_keys(query.get("encryptionKeys"))
    batching = not keys and _flag(query, "batchingEnabled")
    compression = "NONE" if keys else _one_of(query, "compressionType", COMPRESSIONS, "NONE")
    hashing = query.get("hashingScheme", HASHING_SCHEMES[0])
    if hashing not in HASHING_SCHEMES:
        raise WrongOption(f"No enum constant org.apache.pulsar.client.api.HashingScheme.{hashing}")
    timeout = _number(query, "sendTimeoutMillis", 30_000)
    if timeout < 0:
        raise WrongOption("sendTimeout needs to be >= 0")
    delay = _number(query, "batchingMaxPublishDelay", 1) if batching else 1
    if delay < 1:
        raise WrongOption("configured value for batch delay must be at least 1ms")
    most = _number(query, "maxPendingMessages", 0) if batching else 0
    if most < 0:
        raise WrongOption("maxPendingMessages needs to be >= 0")
    if "encryptionKeys" in query and not keys:
        raise RefusedUpgrade(500, f"Failed to create producer/consumer: {NO_KEY_READER}")
    first = _number(query, "initialSequenceId", 0, 64)
    return ProducerOptions(
        name=query.get("producerName", ""),
        initial_sequence_id=first if "initialSequenceId" in query else None,
        murmur3=hashing == "Murmur3_32Hash",
        round_robin=_one_of(query, "messageRoutingMode", ROUTING_MODES, ROUTING_MODES[0]) == "RoundRobinPartition",
        send_timeout=timeout / 1000,
        batching=batching,
        batch_messages=_number(query, "batchingMaxMessages", 1000) if batching else 1,
        batch_delay=delay / 1000,
        most_pending=most,
        compression=getattr(pb, compression),
        keys=keys,
    )


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """Options of a consumer. Times are in seconds."""

    name: str = ""
    type: str = "Exclusive"
    durable: bool = True
    earliest: bool = False
    queue: int = LARGEST_QUEUE
    priority_level: int = 0
    ack_timeout: float = 0.0  # 0: none
    nack_delay: float = 60.0
    most_redeliveries: int = 0  # 0: no dead letters
    dead_letter_topic: str = ""
    pull: bool = False
    crypto_action: str = "FAIL"
    start: MessageId | None = None  # of a reader

    @property
    def most_outstanding(self) -> int:
        """Return how many messages may wait for their acknowledgement (1 without a queue)."""
        return self.queue or 1


def consumer_options(query: Query, place: SocketTopics) -> ConsumerOptions:
    """Return the options of a consumer. Raise `RefusedUpgrade`."""
    ack_timeout = _number(query, "ackTimeoutMillis", 0)
    if ack_timeout and ack_timeout < SHORTEST_ACK_TIMEOUT:
        raise WrongOption(f"Ack timeout should be greater than {SHORTEST_ACK_TIMEOUT} ms")
    kind = _one_of(query, "subscriptionType", SUBSCRIPTION_TYPES, SUBSCRIPTION_TYPES[0])
    mode = _one_of(query, "subscriptionMode", MODES, MODES[0])
    position = _one_of(query, "subscriptionInitialPosition", POSITIONS, POSITIONS[0])
    queue = _number(query, "receiverQueueSize", LARGEST_QUEUE)
    if queue < 0:
        raise WrongOption("receiverQueueSize needs to be >= 0")
    _check_name(query, "consumerName")
    priority = _number(query, "priorityLevel", 0)
    if priority < 0:
        raise WrongOption("priorityLevel needs to be >= 0")
    nack_delay = _number(query, "negativeAckRedeliveryDelay", 60_000)
    if nack_delay < 0:
        raise WrongOption("redeliveryDelay needs to be >= 0")
    letters = _number(query, "maxRedeliverCount", 0)
    if letters <= 0 and ("maxRedeliverCount" in query or "deadLetterTopic" in query):
        raise WrongOption("MaxRedeliverCount must be > 0.")
    source = place.pattern or (place.topics[0] if place.topics else "")
    return ConsumerOptions(
        name=query.get("consumerName", ""),
        type=kind,
        durable=mode == MODES[0],
        earliest=position == "Earliest",
        queue=min(queue, LARGEST_QUEUE),
        priority_level=priority,
        ack_timeout=ack_timeout / 1000,
        nack_delay=nack_delay / 1000,
        most_redeliveries=letters,
        dead_letter_topic=query.get("deadLetterTopic", f"{source}-{place.subscription}{DEAD_LETTERS}"),
        pull=_flag(query, "pullMode"),
        crypto_action=_crypto_action(query),
    )


def reader_options(query: Query) -> ConsumerOptions:
    """Return the options of a reader, as those of its consumer. Raise `RefusedUpgrade`."""
    try:
        queue = _number(query, "receiverQueueSize", LARGEST_QUEUE)
    except WrongOption as error:
        raise WrongPath(error.text.removeprefix("Invalid query params: "), "NumberFormatException") from None
    if queue < 0:
        raise WrongOption("receiverQueueSize needs to be >= 0")
    return ConsumerOptions(
        name=query.get("readerName", ""),
        durable=False,
        queue=min(queue, LARGEST_QUEUE),
        crypto_action=_crypto_action(query),
        start=_start(query.get("messageId", "")),
    )


def _start(text: str) -> MessageId:
    if not text.strip() or text == "latest":
        return MessageId.LATEST
    if text == "earliest":
        return MessageId.EARLIEST
    try:
        return MessageId.from_bytes(decode_base64(text))
    except InvalidMessageId:
        raise WrongOption("Invalid messageId value") from None
    except ValueError:
        raise WrongOption("Invalid messageId base64 value") from None


def _crypto_action(query: Query) -> str:
    """Return the action for messages that cannot be decrypted. As in Pulsar, an unknown one counts as FAIL."""
    action = query.get("cryptoFailureAction", "FAIL")
    return action if action in CRYPTO_ACTIONS else "FAIL"


def _encryption_keys(text: str | None) -> Sequence[EncryptionKey]:
    """Return the keys that a client encrypted itself, from base64 of JSON.

    Other texts name keys of a key reader, which needs a Java class.
    """
    try:
        given = json.loads(base64.b64decode((text or "").strip(), validate=True))
    except (ValueError, RecursionError, binascii.Error):
        return ()
    if not isinstance(given, dict):
        return ()
    return [_encryption_key(name, value) for name, value in given.items()]


def _encryption_key(name: str, given: Any) -> EncryptionKey:
    if not name.strip():
        raise WrongOption("Empty param encryptionKeys.key")
    if not isinstance(given, dict):
        raise WrongOption("Empty param encryptionKeys.value")
    value = given.get("keyValue")
    try:
        data = decode_base64(value) if isinstance(value, str) else b""
    except ValueError:
        data = b""
    if not data:
        raise WrongOption("Empty param encryptionKeys.value.keyValue")
    metadata = given.get("metadata")
    texts = {key: str(each) for key, each in metadata.items()} if isinstance(metadata, dict) else {}
    return EncryptionKey(name.strip(), data, texts)


def _check_name(query: Query, name: str) -> None:
    if name in query and not query[name].strip():
        raise WrongOption(f"{name} cannot be blank")


def _flag(query: Query, name: str) -> bool:
    """Return a boolean as Java reads it: every text other than "true" is false."""
    return query.get(name, "").lower() == "true"


def _one_of(query: Query, name: str, values: Sequence[str], default: str) -> str:
    value = query.get(name, default)
    if value not in values:
        raise WrongOption(f"Invalid {name} {value}")
    return value


def _number(query: Query, name: str, default: int, bits: int = 32) -> int:
    text = query.get(name)
    if text is None:
        return default
    number = parse_number(text, bits)
    if number is None:
        raise WrongOption(f'For input string: "{text}"')
    return number
