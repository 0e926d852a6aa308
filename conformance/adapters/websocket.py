"""The adapter of the conformance kit for the WebSocket API, through the package websocket-client.

Run it with `python -m pulsarium.conformance.adapters.websocket`. The API has no client beside the sockets: the broker
is the client, and the options are those of its queries.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final
from urllib.parse import quote, urlencode

import websocket
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from pulsarium.conformance.adapters.lines import Refusal, serve_in_threads
from pulsarium.conformance.protocol import Unsupported
from pulsarium.proto.message_id import MessageId

Request = Mapping[str, Any]

_NO_CALL: Final = "no such call"
_NO_OPTION: Final = "no such option"
_NO_SCHEMAS: Final = "schemas are left to the application"
_NO_TRANSACTIONS: Final = "no transactions"
_NOT_TOLD: Final = "frames do not tell it"
LACKS: Final = {
    "open.http": "looks up no topics",
    "open.reconnect": "a socket that ended stays closed",
    "producer.access": _NO_OPTION,
    "producer.chunk": "a message is one frame",
    "consumer.compacted": "reads the whole topic, compacted or not",
    "reader.compacted": "reads the whole topic, compacted or not",
    "consumer.batch-index": "acknowledges whole batches",
    "consumer.receipt": "only acknowledgements without a response",
    "consumer.retry": _NO_OPTION,
    "consumer.batch-receive": _NO_OPTION,
    "consumer.hash-ranges": _NO_OPTION,
    "reader.decrypt": "frames of a reader do not tell the encryption context",
    "reader.inclusive": _NO_OPTION,
    "send.ordering-key": "messages have no ordering key",
    "send.null": "a frame needs a payload",
    "send.sequence": "the broker chooses sequence ids",
    "acknowledge-cumulative": "acknowledges single messages",
    **dict.fromkeys(("producer.schema", "consumer.schema", "reader.schema"), _NO_SCHEMAS),
    **dict.fromkeys(("transaction", "commit", "abort"), _NO_TRANSACTIONS),
    **dict.fromkeys(("send.transaction", "acknowledge.transaction"), _NO_TRANSACTIONS),
    **{f"receive.{name}": _NOT_TOLD for name in ("topic", "ordering-key", "index", "publisher", "sequence")},
    "receive.schema-version": _NOT_TOLD,
    **dict.fromkeys(("flush", "last-sequence", "redeliver", "receive-batch", "reconsume-later", "seek"), _NO_CALL),
    **dict.fromkeys(("last-message-id", "has-message", "table-view", "table", "partitions"), _NO_CALL),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OAEP: Final = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
_SECONDS: Final = 30.0
_MOMENT: Final = 0.3


class Keys:
    """A data key, and what a producer tells of it. Applications encrypt themselves, because the broker has no keys."""

    def __init__(self, name: str, public: str) -> None:
        key = load_pem_public_key(Path(public).read_bytes())
        assert isinstance(key, rsa.RSAPublicKey)
        data_key = os.urandom(32)
        self._cipher = AESGCM(data_key)
        told = {name: {"keyValue": _base64(key.encrypt(data_key, _OAEP)), "metadata": {}}}
        self.option = _base64(json.dumps(told).encode())

    def encrypted(self, data: bytes) -> dict[str, str]:
        """Return fields of a frame."""
        nonce = os.urandom(12)
        return {"payload": _base64(self._cipher.encrypt(nonce, data, None)), "encryptionParam": _base64(nonce)}


def _decrypted(frame: Mapping[str, Any], private: str) -> bytes:
    key = load_pem_private_key(Path(private).read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    context = frame["encryptionContext"]
    (told,) = context["keys"].values()
    data_key = key.decrypt(base64.b64decode(told["keyValue"]), _OAEP)
    return AESGCM(data_key).decrypt(base64.b64decode(context["param"]), base64.b64decode(frame["payload"]), None)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Client:
    """The address and the credentials of sockets, and those that are open."""

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url
        self._options = options
        self._open: list[Socket] = []
        self._is_closed = False

    def socket(self, kind: str, path: str, query: Mapping[str, Any]) -> Socket:
        """Open a socket. Raise `Refusal` for the broker's answer."""
        if self._is_closed:
            raise Refusal("AlreadyClosed", "the client is closed")
        url = f"{self._url}/ws/{path}?{urlencode(query)}"
        try:
            opened = Socket(websocket.create_connection(url, timeout=_SECONDS, **self._options))
        except websocket.WebSocketBadStatusException as error:
            text = (error.resp_body or b"").decode(errors="replace")
            raise Refusal(_kind(kind, error.status_code, text), f"{error.status_code} {text}") from None
        except (websocket.WebSocketException, OSError) as error:
            raise Refusal("Connect", f"{type(error).__name__}: {error}") from None
        except ValueError as error:  # in this order, because an error of TLS is both
            raise Refusal("InvalidServiceURL", str(error)) from None
        self._open.append(opened)
        return opened

    def close(self) -> None:
        self._is_closed = True
        for each in self._open:
            each.close()


def _kind(kind: str, status: int, text: str) -> str:
    """Return the kind of error of an answer in place of a socket."""
    if status == 409:
        for name in ("IncompatibleSchema", "Fenced"):
            if name in text:
                return name
        return "ProducerBusy" if kind == "producer" else "ConsumerBusy"
    if "terminated" in text:
        return "TopicTerminated"
    return {400: "InvalidConfiguration", 401: "Authentication", 403: "Authorization", 404: "NotFound"}.get(
        status, "Other"
    )


class Socket:
    """An open socket. Its frames wait in a queue."""

    def __init__(self, opened: websocket.WebSocket) -> None:
        self._socket = opened
        self._frames: Queue[dict[str, Any] | None] = Queue()
        self._ended = ""
        self._permits = 0
        self.pulls = False
        self.reads = False
        self.private = ""
        self.keys: Keys | None = None
        opened.settimeout(None)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while True:
                opcode, data = self._socket.recv_data()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    self._ended = f"the socket was closed: {data[2:].decode(errors='replace')}"
                    break
                self._frames.put(json.loads(data))
        except (websocket.WebSocketException, OSError) as error:
            self._ended = f"{type(error).__name__}: {error}"
        self._frames.put(None)

    def say(self, **frame: Any) -> None:
        try:
            self._socket.send(json.dumps(frame))
        except (websocket.WebSocketException, OSError) as error:
            raise Refusal("AlreadyClosed", self._ended or f"{type(error).__name__}: {error}") from None

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """Return the next frame, or None if there is none in time. Raise `Refusal` when the socket has ended."""
        if self.pulls and not self._permits:
            self.say(type="permit", permitMessages=1)
            self._permits = 1
        try:
            frame = self._frames.get(timeout=max(seconds, 0.001))
        except Empty:
            return None
        if frame is None:
            self._frames.put(None)
            raise Refusal("AlreadyClosed", self._ended)
        self._permits = 0
        if self.reads:  # a message without an answer takes a place in the queue
            self.say(messageId=frame["messageId"])
        return frame

    def settle(self) -> None:
        """Wait a moment. Raise `Refusal` when the broker ended the socket, as its only answer to what was said."""
        self._reader.join(_MOMENT)
        if self._ended:
            raise Refusal("Other", self._ended)

    def close(self) -> None:
        if self._socket.connected:
            self._socket.send_close()
            self._reader.join(_SECONDS)
        self._socket.shutdown()  # type: ignore[no-untyped-call]


class Adapter:
    """The operations of the protocol, one method for each. Ids of messages are those of the broker."""

    def __init__(self) -> None:
        self._things: dict[str, Any] = {}
        self._contexts = count()

    def _thing(self, handle: str) -> Any:
        if handle not in self._things:
            raise Refusal("AlreadyClosed", f"nothing is open as {handle}")
        return self._things[handle]

    def open(self, request: Request) -> None:
        options: dict[str, Any] = {}
        if "token" in request:
            options["header"] = {"Authorization": f"Bearer {request['token']}"}
        if "trust" in request:
            options["sslopt"] = {"ca_certs": request["trust"]}
        self._things[request["as"]] = Client(request["url"], **options)

    def close(self, request: Request) -> None:
        self._thing(request["handle"]).close()

    def producer(self, request: Request) -> None:
        query: dict[str, Any] = {"messageRoutingMode": "RoundRobinPartition"}
        keys = None
        if "name" in request:
            query["producerName"] = request["name"]
        if "batch" in request:
            query |= {"batchingEnabled": "true", "batchingMaxMessages": request["batch"]}
            query["batchingMaxPublishDelay"] = 1000
        if "compression" in request:
            query["compressionType"] = request["compression"]
        if "encrypt" in request:
            if "batch" in request or "compression" in request:
                raise Unsupported("producer.encrypt: the application encrypts, and the broker makes no batches of it")
            keys = Keys(request["encrypt"]["name"], request["encrypt"]["public"])
            query["encryptionKeys"] = keys.option
        client = self._thing(request["client"])
        producer = client.socket("producer", f"v2/producer/{_path(request['topic'])}", query)
        producer.keys = keys
        self._things[request["as"]] = producer

    def send(self, request: Request) -> Mapping[str, Any]:
        producer = self._thing(request["producer"])
        contexts = []
        for each in request["messages"]:
            contexts.append(str(next(self._contexts)))
            frame: dict[str, Any] = {"context": contexts[-1], **_payload(each["value"].encode(), producer.keys)}
            frame |= {name: each[name] for name in ("key", "properties") if name in each}
            if "event-time" in each:
                frame["eventTime"] = (_EPOCH + timedelta(milliseconds=each["event-time"])).isoformat()
            if "delay" in each:
                frame["deliverAfterMs"] = each["delay"]
            producer.say(**frame)
        receipts: dict[str, Mapping[str, Any]] = {}
        while len(receipts) < len(contexts):
            receipt = producer.hear(_SECONDS)
            if receipt is None:
                raise Refusal("Timeout", f"no receipt in {_SECONDS:g} s")
            receipts[receipt["context"]] = receipt
        told = [receipts[context] for context in contexts]
        for receipt in told:
            if receipt["result"] != "ok":
                raise Refusal(_kind_of_text(receipt["errorMsg"]), f"{receipt['result']}: {receipt['errorMsg']}")
        return {"ids": [receipt["messageId"] for receipt in told]}

    def consumer(self, request: Request) -> None:
        query: dict[str, Any] = {
            "subscriptionType": request["type"],
            "subscriptionInitialPosition": request["start"].capitalize(),
            "negativeAckRedeliveryDelay": request.get("nack-delay", 100),
            **_reads(request),
        }
        options = {"name": "consumerName", "ack-timeout": "ackTimeoutMillis", "priority": "priorityLevel"}
        query |= {name: request[option] for option, name in options.items() if option in request}
        if "dead-letter" in request:
            query["maxRedeliverCount"] = request["dead-letter"]["max"]
            if "topic" in request["dead-letter"]:
                query["deadLetterTopic"] = request["dead-letter"]["topic"]
        subscription = quote(request["subscription"], safe="")
        if "pattern" in request:
            path = f"v3/consumer/{subscription}"
            query["topicsPattern"] = request["pattern"]
        elif len(request["topics"]) > 1:
            path = f"v3/consumer/{subscription}"
            query["topics"] = ",".join(request["topics"])
        else:
            path = f"v2/consumer/{_path(request['topics'][0])}/{subscription}"
        if request.get("queue") == 0:
            query["pullMode"] = "true"
        consumer = self._reading(request, path, query)
        consumer.pulls = "pullMode" in query

    def reader(self, request: Request) -> None:
        query = {"messageId": request["start"], **_reads(request)}
        self._reading(request, f"v2/reader/{_path(request['topic'])}", query).reads = True

    def _reading(self, request: Request, path: str, query: Mapping[str, Any]) -> Socket:
        consumer: Socket = self._thing(request["client"]).socket("consumer", path, query)
        consumer.private = request.get("decrypt", "")
        self._things[request["as"]] = consumer
        return consumer

    def receive(self, request: Request) -> Mapping[str, Any]:
        consumer = self._thing(request["consumer"])
        told: list[dict[str, Any]] = []
        end = time.monotonic() + request["seconds"]
        while len(told) < request["count"]:
            frame = consumer.hear(end - time.monotonic())
            if frame is None:
                break
            told.append(_told(frame, consumer.private))
        return {"messages": told}

    def acknowledge(self, request: Request) -> None:
        self._thing(request["consumer"]).say(messageId=request["message"])

    def negative_acknowledge(self, request: Request) -> None:
        self._thing(request["consumer"]).say(type="negativeAcknowledge", messageId=request["message"])

    def unsubscribe(self, request: Request) -> None:
        consumer = self._thing(request["consumer"])
        consumer.say(type="unsubscribe")
        consumer.settle()


def _reads(request: Request) -> dict[str, Any]:
    """Return the options that consumers and readers share."""
    query: dict[str, Any] = {}
    if "queue" in request:
        query["receiverQueueSize"] = request["queue"]
    if "crypto-failure" in request:
        query["cryptoFailureAction"] = request["crypto-failure"].upper()
    if "decrypt" in request:  # by the adapter, as an application does
        query["cryptoFailureAction"] = "CONSUME"
    return query


def _path(topic: str) -> str:
    domain, _, name = topic.partition("://")
    return "/".join((domain, *(quote(part, safe="") for part in name.split("/", 2))))


def _payload(data: bytes, keys: Keys | None) -> Mapping[str, str]:
    return {"payload": _base64(data)} if keys is None else keys.encrypted(data)


def _told(frame: Mapping[str, Any], private: str) -> dict[str, Any]:
    is_encrypted = bool(private) and "encryptionContext" in frame
    data = _decrypted(frame, private) if is_encrypted else base64.b64decode(frame["payload"])
    at = MessageId.from_bytes(base64.b64decode(frame["messageId"]))
    told: dict[str, Any] = {
        "id": frame["messageId"],
        "value": data.decode(errors="replace"),
        "place": [at.ledger_id, at.entry_id, at.batch_index],
        "redeliveries": frame["redeliveryCount"],
        **{name: frame[name] for name in ("key", "properties") if frame.get(name)},
    }
    if "eventTime" in frame:
        told["event-time"] = (datetime.fromisoformat(frame["eventTime"]) - _EPOCH) // timedelta(milliseconds=1)
    return told


def _kind_of_text(text: str) -> str:
    """Return the kind of error of a receipt, which has a text only."""
    kinds = {"terminated": "TopicTerminated", "timeout": "Timeout", "closed": "AlreadyClosed"}
    return next((kind for word, kind in kinds.items() if word in text.lower()), "Other")


if __name__ == "__main__":
    about = {"client": "WebSocket (websocket-client)", "version": version("websocket-client"), "topics": ["classic"]}
    serve_in_threads(Adapter(), {**about, "url": "ws", "lacks": LACKS}, lambda error: "Other")
