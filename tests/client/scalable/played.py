"""A broker of one scalable topic, played by a test: it stores entries, and changes the layout when the test says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pulsarium.client import Client
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.opening import open_client
from pulsarium.proto import batch, entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.peer import Peer, Peers, Type
from tests.client.scalable.layouts import TOPIC

UNASKED = 2**64 - 1
NEW = {"feature_flags": {"supports_scalable_topics": True, "supports_tc_metadata_discovery": True}}


class PlayedBroker:
    """Answers as a broker does, on each connection that a client makes."""

    def __init__(self, peers: Peers, dag: pb.ScalableTopicDAG, connected: dict[str, Any]) -> None:
        self.dag = dag
        self.stored: defaultdict[str, list[tuple[str, bytes]]] = defaultdict(list)
        """The keys and contents of the messages of each topic."""
        self.entries: defaultdict[str, list[pb.MessageMetadata]] = defaultdict(list)
        self.producers: list[pb.CommandProducer] = []
        self.lookups: list[pb.CommandScalableTopicLookup] = []
        self.closed_sessions: list[int] = []
        self.subscribed: list[pb.CommandScalableTopicSubscribe] = []
        self.opened: list[pb.CommandSubscribe] = []
        self.left: list[int] = []
        self.acks: list[pb.CommandAck] = []
        self.closed_consumers: list[int] = []
        self.assignment = pb.ScalableConsumerAssignment(layout_epoch=0)
        self.terminated: set[str] = set()
        self.refusals: dict[str, int] = {}
        """The error with which a producer or consumer of a topic is refused."""
        self.keeps_receipts = False
        """Store entries without a receipt."""
        self.drops_sends = False
        """Neither store entries nor give receipts, as after the end of a topic."""
        self.peers: list[Peer] = []
        self._all = peers
        self._connected = connected
        self._producing: dict[tuple[Peer, int], str] = {}
        self._consuming: dict[tuple[Peer, int], str] = {}
        self._sessions: list[tuple[Peer, int]] = []
        self._registered: list[tuple[Peer, int]] = []
        self._numbers = 0
        self.sends = 0
        self.sent_messages = 0
        """Number of SENDs that arrived, stored or not."""
        self._answered = anyio.Event()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                peer = await self._all.next()
                self.peers.append(peer)
                tasks.start_soon(self._serve, peer)

    @property
    def dialled(self) -> list[BrokerAddress]:
        """Return the addresses to which the client has connected."""
        return self._all.dialled

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the commands that have arrived make a condition true."""
        while not is_so():
            self._answered = anyio.Event()
            await self._answered.wait()

    async def cut(self) -> None:
        """End all connections."""
        for peer in list(self.peers):
            await peer.close()

    async def change(self, dag: pb.ScalableTopicDAG, *, tells_producers: bool = True) -> None:
        """Change the layout: terminate the topics of sealed segments, close their producers, and tell the sessions."""
        self.terminate(dag)
        if tells_producers:
            for (peer, producer_id), topic in list(self._producing.items()):
                if topic in self.terminated:
                    del self._producing[peer, producer_id]
                    await peer.say(Type.CLOSE_PRODUCER, producer_id=producer_id, request_id=UNASKED)
        await self.push(dag)

    def terminate(self, dag: pb.ScalableTopicDAG) -> None:
        """End the topics of the segments that are sealed in a layout."""
        name = TOPIC.partition("://")[2]
        for one in dag.segments:
            if one.state == pb.SEALED:
                own = f"segment://{name}/{one.hash_start:04x}-{one.hash_end:04x}-{one.segment_id}"
                self.terminated.add(one.legacy_topic_name or own)

    async def push(self, dag: pb.ScalableTopicDAG) -> None:
        """Send a layout to all sessions."""
        self.dag = dag
        for peer, session_id in self._sessions:
            if peer in self.peers:
                await self._tell(peer, session_id)

    async def assign(self, assignment: pb.ScalableConsumerAssignment) -> None:
        """Send an assignment to all registered consumers."""
        self.assignment = assignment
        for peer, consumer_id in self._registered:
            if peer in self.peers:
                await peer.say(Type.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, consumer_id=consumer_id, assignment=assignment)

    async def deliver(self, topic: str, entry_id: int, payload: bytes) -> None:
        """Send a message to the newest consumer of a topic."""
        peer, consumer_id = next(
            place for place, name in reversed(self._consuming.items()) if name == topic and place[0] in self.peers
        )
        metadata = pb.MessageMetadata(producer_name="p", sequence_id=entry_id, publish_time=1)
        position = {"ledgerId": 1, "entryId": entry_id}
        built = entry.build(metadata, payload)
        await peer.say(Type.MESSAGE, built, consumer_id=consumer_id, message_id=position)

    async def end(self, topic: str) -> None:
        """Tell the consumers of a topic that they have reached its end."""
        for (peer, consumer_id), name in list(self._consuming.items()):
            if name == topic and peer in self.peers:
                await peer.say(Type.REACHED_END_OF_TOPIC, consumer_id=consumer_id)

    async def _serve(self, peer: Peer) -> None:
        try:
            await peer.take_in(**self._connected)
            while True:
                command, trailing = await peer.next()
                await self._answer(peer, command, trailing)
                self._answered.set()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            if peer in self.peers:
                self.peers.remove(peer)
            with anyio.CancelScope(shield=True):
                await peer.close()

    async def _answer(self, peer: Peer, command: pb.BaseCommand, trailing: bytes) -> None:
        if command.type == Type.SCALABLE_TOPIC_LOOKUP:
            self.lookups.append(command.scalableTopicLookup)
            self._sessions.append((peer, command.scalableTopicLookup.session_id))
            await self._tell(peer, command.scalableTopicLookup.session_id)
        elif command.type == Type.SCALABLE_TOPIC_CLOSE:
            self.closed_sessions.append(command.scalableTopicClose.session_id)
        elif command.type == Type.LOOKUP:
            where = pb.CommandLookupTopicResponse.Connect
            request = command.lookupTopic.request_id
            await peer.say(Type.LOOKUP_RESPONSE, request_id=request, response=where, brokerServiceUrl="pulsar://a:6650")
        elif command.type == Type.PRODUCER:
            await self._producer(peer, command.producer)
        elif command.type == Type.SEND:
            await self._send(peer, command.send, trailing)
        elif command.type == Type.CLOSE_PRODUCER:
            self._producing.pop((peer, command.close_producer.producer_id), None)
            await peer.say(Type.SUCCESS, request_id=command.close_producer.request_id)
        elif command.type == Type.SCALABLE_TOPIC_SUBSCRIBE:
            asked = command.scalableTopicSubscribe
            self.subscribed.append(asked)
            self._registered.append((peer, asked.consumer_id))
            reply = Type.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE
            await peer.say(reply, request_id=asked.request_id, assignment=self.assignment)
        elif command.type == Type.SCALABLE_TOPIC_UNSUBSCRIBE:
            self.left.append(command.scalableTopicUnsubscribe.consumer_id)
            await peer.say(Type.SUCCESS, request_id=command.scalableTopicUnsubscribe.request_id)
        elif command.type == Type.SUBSCRIBE:
            await self._subscribe(peer, command.subscribe)
        elif command.type == Type.ACK:
            self.acks.append(command.ack)
            if command.ack.HasField("request_id"):
                await peer.say(Type.ACK_RESPONSE, consumer_id=0, request_id=command.ack.request_id)
        elif command.type == Type.CLOSE_CONSUMER:
            self.closed_consumers.append(command.close_consumer.consumer_id)
            self._consuming.pop((peer, command.close_consumer.consumer_id), None)
            await peer.say(Type.SUCCESS, request_id=command.close_consumer.request_id)

    async def _tell(self, peer: Peer, session_id: int) -> None:
        name = TOPIC
        await peer.say(Type.SCALABLE_TOPIC_UPDATE, session_id=session_id, dag=self.dag, resolved_topic_name=name)

    async def _refused(self, peer: Peer, topic: str, request_id: int) -> bool:
        error = self.refusals.get(topic)
        if error is not None:
            await peer.say(Type.ERROR, request_id=request_id, error=error, message="no")
        return error is not None

    async def _producer(self, peer: Peer, asked: pb.CommandProducer) -> None:
        self.producers.append(asked)
        if await self._refused(peer, asked.topic, asked.request_id):
            return
        if asked.topic in self.terminated:
            error = pb.TopicTerminatedError
            await peer.say(Type.ERROR, request_id=asked.request_id, error=error, message="Topic was already terminated")
            return
        self._producing[peer, asked.producer_id] = asked.topic
        await peer.say(Type.PRODUCER_SUCCESS, request_id=asked.request_id, producer_name=asked.producer_name)

    async def _subscribe(self, peer: Peer, asked: pb.CommandSubscribe) -> None:
        self.opened.append(asked)
        if await self._refused(peer, asked.topic, asked.request_id):
            return
        self._consuming[peer, asked.consumer_id] = asked.topic
        await peer.say(Type.SUCCESS, request_id=asked.request_id)

    async def _send(self, peer: Peer, send: pb.CommandSend, trailing: bytes) -> None:
        self.sends += 1
        self.sent_messages += send.num_messages
        topic = self._producing.get((peer, send.producer_id))
        if topic is None or topic in self.terminated or self.drops_sends:
            return
        metadata = entry.parse_metadata(trailing)
        payload = entry.payload_of(trailing)
        self.entries[topic].append(metadata)
        if metadata.HasField("num_messages_in_batch"):
            found = batch.unpack(payload, metadata.num_messages_in_batch)
            self.stored[topic] += [(str(single.partition_key), bytes(data)) for single, data in found]
        else:
            self.stored[topic].append((metadata.partition_key, payload))
        if not self.keeps_receipts:
            self._numbers += 1
            position = {"ledgerId": 1, "entryId": self._numbers}
            where: dict[str, Any] = {"producer_id": send.producer_id, "message_id": position}
            await peer.say(Type.SEND_RECEIPT, sequence_id=send.sequence_id, **where)


@asynccontextmanager
async def played(
    dag: pb.ScalableTopicDAG, connected: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[tuple[PlayedBroker, Client]]:
    """Yield a played broker and a client of it."""
    peers = Peers(**settings)
    broker = PlayedBroker(peers, dag, {**NEW, **(connected or {})})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(broker.run)
        async with open_client("pulsar://a", peers.settings) as client:
            yield broker, client
        tasks.cancel_scope.cancel()
    peers.close()
