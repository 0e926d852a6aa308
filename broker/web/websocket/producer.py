"""A WebSocket that publishes: JSON frames in, receipts as JSON out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.kinds import read
from pulsarium.broker.web.http.producer_message import PRODUCER_MESSAGE
from pulsarium.broker.web.websocket.java import NULL_TEXT, decode_base64, time_of
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLinks
from pulsarium.broker.web.websocket.options import ProducerOptions, SocketTopics
from pulsarium.broker.web.websocket.publisher import SocketPublisher
from pulsarium.broker.web.websocket.socket import Handler, Output
from pulsarium.broker.web.websocket.topic_producer import Opened, OutgoingMessage
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.numbers import LONG_MAX, unsigned

NULL_FRAME: Final = 'Cannot read field "context" because "sendRequest" is null'
MOST_WAITING: Final = 8 << 20  # bytes of messages without a receipt from which on no frames are read
HALF_SIZED: Final = "the params compressionType and uncompressedMessageSize should both empty or both non-empty"
# Pulsar's codes (WebSocketError), in `result` behind "send-error:"
WRONG_JSON, WRONG_PAYLOAD, UNKNOWN = 3, 7, 8


class WrongMessage(Exception):
    """Error for a message that the producer cannot publish."""


class Producer(Handler):
    """A producer of a topic or of all its partitions."""

    def __init__(self, links: BrokerLinks, place: SocketTopics, options: ProducerOptions, output: Output) -> None:
        self._links = links
        self.place = place
        self._options = options
        self._output = output
        (topic,) = place.topics
        self._topic = topic
        self._publisher = SocketPublisher(links, topic, options)
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
            frame = read(PRODUCER_MESSAGE, text)
        except JsonError as error:
            self._answer({"result": f"send-error:{WRONG_JSON}", "errorMsg": str(error)}, None)
            return
        context = None if frame is None else frame.get("context")
        try:
            if frame is None:
                raise WrongMessage(NULL_FRAME)
            metadata, payload = self._message(frame)
        except WrongMessage as error:
            self._answer({"result": f"send-error:{WRONG_PAYLOAD}", "errorMsg": str(error)}, context)
            return

        def sent(answer: MessageId | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                self._answer({"result": f"send-error:{UNKNOWN}", "errorMsg": answer.text}, context)
            else:
                self.published += 1
                self._answer({"result": "ok", "messageId": base64_of(answer)}, context)

        self._publisher.send(OutgoingMessage(metadata, payload, sent))

    def _message(self, frame: Mapping[str, Any]) -> tuple[pb.MessageMetadata, bytes]:
        payload = frame.get("payload")
        if payload is None:
            raise WrongMessage(NULL_TEXT)
        try:
            data = decode_base64(payload)
        except ValueError as error:
            raise WrongMessage(f"Invalid Base64 message-payload error={error}") from None
        now_ms = self._links.broker.clock_of(self._topic).now_ms()
        metadata = pb.MessageMetadata(publish_time=now_ms)
        for name, value in frame.get("properties", {}).items():
            metadata.properties.add(key=name, value=value)
        if "key" in frame:
            metadata.partition_key = frame["key"]
        metadata.replicate_to.extend(frame.get("replicationClusters", ()))
        if "eventTime" in frame:
            try:
                metadata.event_time = unsigned(time_of(frame["eventTime"]))
            except ValueError as error:
                raise WrongMessage(str(error)) from None
        if frame["deliverAt"] > 0:
            metadata.deliver_at_time = frame["deliverAt"]
        if frame["deliverAfterMs"] > 0:
            metadata.deliver_at_time = min(now_ms + frame["deliverAfterMs"], LONG_MAX)
        if self._options.keys:
            self._add_encryption(metadata, frame)
        return metadata, data

    def _add_encryption(self, metadata: pb.MessageMetadata, frame: Mapping[str, Any]) -> None:
        """Add what the client says of its own encryption and compression."""
        parameter = frame.get("encryptionParam")
        try:
            metadata.encryption_param = decode_base64(parameter) if parameter and parameter.strip() else b""
        except ValueError as error:
            raise WrongMessage(f"Invalid Base64 encryptionParam error={error}") from None
        kind, size = frame.get("compressionType"), frame.get("uncompressedMessageSize")
        if kind is not None and size is not None:
            metadata.compression = pb.CompressionType.Value(kind)  # type: ignore[assignment]
            metadata.uncompressed_size = size % 2**32
        elif size is not None or kind not in (None, "NONE"):
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
