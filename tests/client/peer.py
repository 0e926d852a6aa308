"""The other end of a connection, played by a test: streams in memory that work under trio and asyncio."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import anyio
from anyio.abc import ByteStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.proto.commands import COMMANDS, parse
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import frame_of

Type = pb.BaseCommand


class Pipe(ByteStream):
    """A byte stream in memory: one end of a pair."""

    def __init__(self, incoming: MemoryObjectReceiveStream[bytes], outgoing: MemoryObjectSendStream[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._rest = b""
        self.is_closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._rest:
            self._rest = await self._incoming.receive()
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        await self._outgoing.send(bytes(item))

    async def send_eof(self) -> None:
        await self._outgoing.aclose()

    async def aclose(self) -> None:
        self.is_closed = True
        self._incoming.close()
        self._outgoing.close()


def pipes() -> tuple[Pipe, Pipe]:
    there = anyio.create_memory_object_stream[bytes](math.inf)
    back = anyio.create_memory_object_stream[bytes](math.inf)
    return Pipe(back[1], there[0]), Pipe(there[1], back[0])


class Peer:
    """A broker on one connection, played by a test."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._decoder = FrameDecoder()
        self._inbox: deque[tuple[pb.BaseCommand, bytes]] = deque()

    async def next(self) -> tuple[pb.BaseCommand, bytes]:
        """Return the next command and the bytes behind it. Raise `EndOfStream` when the client has closed."""
        while not self._inbox:
            for encoded, trailing in self._decoder.feed(await self.stream.receive()):
                base = pb.BaseCommand()
                parse(encoded, base)
                self._inbox.append((base, trailing))
        return self._inbox.popleft()

    async def expect(self, type: int) -> Any:
        """Return the body of the next command, which must be of this type."""
        base, _ = await self.next()
        assert base.type == type, base
        return getattr(base, COMMANDS[type].field)

    async def say(self, type: int, trailing: bytes = b"", **fields: Any) -> None:
        await self.stream.send(frame_of(type, trailing, **fields))

    async def take_in(self, **fields: Any) -> pb.CommandConnect:
        """Accept the client's CONNECT, and answer with CONNECTED."""
        connect: pb.CommandConnect = await self.expect(Type.CONNECT)
        await self.say(Type.CONNECTED, **{"server_version": "test", "protocol_version": 22, **fields})
        return connect

    async def lead_here(self, url: str = "pulsar://a:6650") -> None:
        """Answer the partitions request with 0, and the lookup with this broker."""
        asked = await self.expect(Type.PARTITIONED_METADATA)
        await self.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=asked.request_id, partitions=0)
        await self.lead_here_again(url)

    async def lead_here_again(self, url: str = "pulsar://a:6650") -> None:
        asked = await self.expect(Type.LOOKUP)
        await self.say(
            Type.LOOKUP_RESPONSE,
            request_id=asked.request_id,
            response=pb.CommandLookupTopicResponse.Connect,
            brokerServiceUrl=url,
        )

    async def close(self) -> None:
        await self.stream.aclose()


class Peers:
    """The connections that a client makes with `settings`, which lead to the test."""

    def __init__(self, **settings: Any) -> None:
        self.refused: set[BrokerAddress] = set()
        self.dialled: list[BrokerAddress] = []
        self._send, self._receive = anyio.create_memory_object_stream[Peer](math.inf)
        self.settings = Settings(dial=self._dial, **settings)

    async def _dial(self, address: BrokerAddress) -> ByteStream:
        self.dialled.append(address)
        await anyio.lowlevel.checkpoint()
        if address in self.refused:
            raise ConnectionRefusedError("nobody there")
        near, far = pipes()
        await self._send.send(Peer(far))
        return near

    async def next(self) -> Peer:
        """Return the client's next connection, on which the broker has sent nothing yet."""
        return await self._receive.receive()

    def close(self) -> None:
        self._send.close()
        self._receive.close()
