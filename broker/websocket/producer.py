"""A WebSocket that publishes: JSON frames in, receipts as JSON out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from pulsarium.broker.websocket.java import (
    NULL_TEXT,
    WrongFrame,
    decode_base64,
    read_object,
    text_field,
    time_of,
    wrong_value,
)
from pulsarium.broker.websocket.link import Failed, Links
from pulsarium.broker.websocket.options import Place, ProducerOptions
from pulsarium.broker.websocket.publisher import Publisher
from pulsarium.broker.websocket.socket import Handler, Output
from pulsarium.broker.websocket.topic_producer import Opened, Outgoing
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId

JAVA_TYPE: Final = "org.apache.pulsar.websocket.data.ProducerMessage"
NULL_FRAME: Final = 'Cannot read field "context" because "sendRequest" is null'
MOST_WAITING: Final = 8 << 20  # bytes of messages without a receipt from which on no frames are read
HALF_SIZED: Final = "the params compressionType and uncompressedMessageSize should both empty or both non-empty"
# Pulsar's codes (WebSocketError), in `result` behind "send-error:"
KINDS: Final = dict(pb.CompressionType.items())
WRONG_JSON, WRONG_PAYLOAD, UNKNOWN = 3, 7, 8


class WrongMessage(Exception):
    """Error for a message that the producer cannot publish."""


class Producer(Handler):
    """A producer of a topic or of all its partitions."""

    def __init__(self, links: Links, place: Place, options: ProducerOptions, output: Output) -> None:
        self._links = links
        self.place = place
        self._options = options
        self._output = output
        (topic,) = place.topics
        self._topic = topic
        self._publisher = Publisher(links, topic, options)
        self.published = 0

    @property
    def may_read(self) -> bool:
        return self._links.may_read and self._publisher.waiting_bytes < MOST_WAITING

    def open(self, opened: Opened) -> None:
        self._publisher.open(opened)

    def resume(self) -> None:
        self._links.wake()

    def receive(self, text: str) -> None:
        """Publish the message of a frame. Answer a wrong frame with Pulsar's code and text."""
        try:
            frame = read_object(text, JAVA_TYPE)
            context = None if frame is None else text_field(frame.get("context"))
            fields = {} if frame is None else _fields(frame)
        except WrongFrame as error:
            self._answer({"result": f"send-error:{WRONG_JSON}", "errorMsg": str(error)}, None)
            return
        try:
            if frame is None:
                raise WrongMessage(NULL_FRAME)
            metadata, payload = self._message(frame, fields)
        except WrongMessage as error:
            self._answer({"result": f"send-error:{WRONG_PAYLOAD}", "errorMsg": str(error)}, context)
            return

        def sent(answer: MessageId | Failed) -> None:
            if isinstance(answer, Failed):
                self._answer({"result": f"send-error:{UNKNOWN}", "errorMsg": answer.text}, context)
            else:
                self.published += 1
                self._answer({"result": "ok", "messageId": base64_of(answer)}, context)

        self._publisher.send(Outgoing(metadata, payload, sent))

    def _message(self, frame: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[pb.MessageMetadata, bytes]:
        payload = text_field(frame.get("payload"))
        if payload is None:
            raise WrongMessage(NULL_TEXT)
        try:
            data = decode_base64(payload)
        except ValueError as error:
            raise WrongMessage(f"Invalid Base64 message-payload error={error}") from None
        now_ms = self._links.broker.clock_of(self._topic).now_ms()
        metadata = pb.MessageMetadata(publish_time=now_ms)
        for name, value in fields["properties"].items():
            metadata.properties.add(key=name, value=value)
        key = text_field(frame.get("key"))
        if key is not None:
            metadata.partition_key = key
        metadata.replicate_to.extend(fields["replicationClusters"])
        if (event_time := text_field(frame.get("eventTime"))) is not None:
            try:
                metadata.event_time = time_of(event_time) % 2**64
            except ValueError as error:
                raise WrongMessage(str(error)) from None
        if fields["deliverAt"] > 0:
            metadata.deliver_at_time = fields["deliverAt"]
        if fields["deliverAfterMs"] > 0:
            metadata.deliver_at_time = min(now_ms + fields["deliverAfterMs"], 2**63 - 1)
        if self._options.keys:
            self._add_encryption(metadata, frame, fields)
        return metadata, data

    def _add_encryption(
        self, metadata: pb.MessageMetadata, frame: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> None:
        """Add what the client says of its own encryption and compression."""
        parameter = text_field(frame.get("encryptionParam"))
        try:
            metadata.encryption_param = decode_base64(parameter) if parameter and parameter.strip() else b""
        except ValueError as error:
            raise WrongMessage(f"Invalid Base64 encryptionParam error={error}") from None
        kind, size = fields["compressionType"], fields["uncompressedMessageSize"]
        if kind is not None and size is not None:
            metadata.compression, metadata.uncompressed_size = kind, size
        elif size is not None or kind not in (None, pb.NONE):
            raise WrongMessage(HALF_SIZED)

    def _answer(self, answer: dict[str, Any], context: str | None) -> None:
        if context is not None:
            answer["context"] = context
        self._output.send({**answer, "errorCode": 0, "schemaVersion": 0})

    def close(self) -> None:
        self._publisher.close()
        self._links.close()


def base64_of(message_id: MessageId) -> str:
    return base64.b64encode(message_id.to_bytes()).decode()


def _fields(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are no texts. Raise `WrongFrame` for a wrong kind of value."""
    properties, clusters = frame.get("properties"), frame.get("replicationClusters")
    if isinstance(properties, str):
        raise WrongFrame(
            "Cannot construct instance of `java.util.LinkedHashMap` (although at least one Creator exists): no "
            f"String-argument constructor/factory method to deserialize from String value ('{properties}')"
        )
    if not isinstance(properties, (dict, type(None))):
        raise wrong_value("java.util.LinkedHashMap<java.lang.String,java.lang.String>", properties)
    if not isinstance(clusters, (list, type(None))):
        raise wrong_value("java.util.ArrayList<java.lang.String>", clusters)
    kind = frame.get("compressionType")
    size = frame.get("uncompressedMessageSize")
    return {
        "properties": {key: text_field(value) or "" for key, value in (properties or {}).items()},
        "replicationClusters": [text_field(each) or "" for each in clusters or ()],
        "deliverAt": long_of(frame.get("deliverAt")),
        "deliverAfterMs": long_of(frame.get("deliverAfterMs")),
        "compressionType": KINDS.get(kind) if isinstance(kind, str) else None,
        "uncompressedMessageSize": None if size is None else long_of(size) % 2**31,
    }


def long_of(value: Any) -> int:
    """Return a JSON value as Jackson reads a long. Raise `WrongFrame` for another kind of value."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong_value("long", value)
    try:
        number = int(value)
    except (ValueError, OverflowError):
        raise wrong_value("long", value) from None
    if not -(2**63) <= number < 2**63:
        raise wrong_value("long", value)
    return number
