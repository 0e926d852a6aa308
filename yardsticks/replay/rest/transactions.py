"""The recorder's client with transactions, frame by frame: the official Python client has none."""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

from pulsarium.proto import entry
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
TEN_MINUTES = 600_000
TIMEOUT = 60.0

Type = pb.BaseCommand


class Transactions:
    """A producer, a Shared consumer, and transactions of coordinator 0, one at a time."""

    def __init__(self, service_url: str, topic: str, subscription: str) -> None:
        self._topic = topic
        self._subscription = subscription
        address = urlsplit(service_url)
        self._socket = socket.create_connection((address.hostname, address.port), TIMEOUT)
        self._decoder = FrameDecoder()
        self._inbox: list[pb.BaseCommand] = []
        self._requests = 0
        self._sent = 0
        self._open: dict[str, int] = {}
        self._send(Type.CONNECT, client_version="Pulsar-Java-v4.0.8", protocol_version=21)
        self._next(Type.CONNECTED)
        for name in (ASSIGN, topic):
            self._ask(Type.LOOKUP, topic=name)
        self._ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0)
        self._ask(Type.PRODUCER, topic=topic, producer_id=0)
        self._ask(
            Type.SUBSCRIBE,
            topic=topic,
            subscription=subscription,
            subType=pb.CommandSubscribe.Shared,
            consumer_id=0,
            consumer_name="CVplH",  # the name that the recorder's client generated
            initialPosition=pb.CommandSubscribe.Earliest,
        )
        self._send(Type.FLOW, consumer_id=0, messagePermits=1000)

    def close(self) -> None:
        self._socket.close()

    def begin(self) -> dict[str, str]:
        """Publish a message, and another one in a transaction that acknowledges the next delivered message.

        Return the ids of the transaction and of the acknowledged message, as paths of the admin API have them.
        """
        self._publish(b"plain", {})
        reply = self._ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=TEN_MINUTES)
        txn = self._open = {
            "txnid_most_bits": reply.newTxnResponse.txnid_most_bits,
            "txnid_least_bits": reply.newTxnResponse.txnid_least_bits,
        }
        self._ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[self._topic])
        self._publish(b"in txn", txn)
        message_id = self._next(Type.MESSAGE).message.message_id
        subscription = {"topic": self._topic, "subscription": self._subscription}
        self._ask(Type.ADD_SUBSCRIPTION_TO_TXN, **txn, subscription=[subscription])
        self._ask(Type.ACK, consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=[message_id], **txn)
        return {
            "transaction": f"{txn['txnid_most_bits']}/{txn['txnid_least_bits']}",
            "acked": f"{message_id.ledgerId}/{message_id.entryId}",
        }

    def commit(self) -> None:
        self._ask(Type.END_TXN, **self._open, txn_action=pb.COMMIT)

    def _publish(self, payload: bytes, txn: dict[str, Any]) -> None:
        metadata = pb.MessageMetadata(
            producer_name="p", sequence_id=self._sent, publish_time=int(time.time() * 1000), **txn
        )
        self._send(Type.SEND, entry.build(metadata, payload), producer_id=0, sequence_id=self._sent, **txn)
        self._sent += 1
        self._next(Type.SEND_RECEIPT)

    def _send(self, type: int, trailing: bytes = b"", **fields: Any) -> None:
        base = pb.BaseCommand(type=pb.BaseCommand.Type.Name(type))
        body = getattr(base, COMMANDS[type].field)
        body.MergeFrom(body.__class__(**fields))
        self._socket.sendall(frame(base.SerializeToString(), trailing))

    def _ask(self, type: int, **fields: Any) -> pb.BaseCommand:
        self._requests += 1
        self._send(type, request_id=self._requests, **fields)
        answered_by = COMMANDS[type].reply
        assert answered_by is not None
        return self._next(answered_by)

    def _next(self, type: int) -> pb.BaseCommand:
        """Return the next frame of that type, and keep other frames for later."""
        while True:
            for base in self._inbox:
                assert base.type != Type.ERROR, base
                if base.type == type:
                    self._inbox.remove(base)
                    return base
            data = self._socket.recv(1 << 16)
            assert data, "the broker closed the connection"
            self._inbox += [pb.BaseCommand.FromString(head) for head, _ in self._decoder.feed(data)]
