"""Frames, limits and timeouts of WebSockets."""

from __future__ import annotations

import pytest
import trio
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from pulsarium.broker.config import Config
from pulsarium.broker.net import slices
from pulsarium.broker.web.websocket.socket import open_sockets
from tests.broker.web.websocket.talk import CONSUMER, PRODUCER, message, websockets


async def test_a_message_may_come_in_pieces() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER)
        first = producer.protocol.send(TextMessage(data='{"payload":', message_finished=False))
        rest = producer.protocol.send(TextMessage(data='"YQ=="}'))
        for byte in first + rest:
            await producer.stream.send_all(bytes([byte]))
        assert (await producer.frame())["result"] == "ok"


async def test_binary_messages_are_ignored() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER)
        await producer.stream.send_all(producer.protocol.send(BytesMessage(data=b'{"payload":"YQ=="}')))
        await producer.alive()


@pytest.mark.parametrize("cut", [1, 50])
async def test_a_message_that_is_too_large_ends_the_connection(cut: int) -> None:
    async with websockets(Config(webSocketMaxTextFrameSize=100)) as client:
        producer = await client.talk(PRODUCER)
        text = "x" * 101
        for start in range(0, 101, cut * 10):
            last = start + cut * 10 >= 101
            piece = TextMessage(data=text[start : start + cut * 10], message_finished=last)
            await producer.stream.send_all(producer.protocol.send(piece))
        code, reason = await producer.closing()
        assert code == 1009
        assert reason.startswith("Text message too large: ")


async def test_bytes_that_are_no_frame_end_the_connection() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER)
        await producer.stream.send_all(b"\xff\xff\xff\xff")
        code, _ = await producer.closing()
        assert code == 1002
        assert await client.publish("still there")


async def test_a_client_that_sends_many_tiny_frames_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async with websockets() as client:
        greedy, polite = await client.talk(PRODUCER), await client.talk(PRODUCER)
        monkeypatch.setattr(slices, "SLICE", 0)
        await greedy.stream.send_all(greedy.protocol.send(Ping()) * 3000)
        await polite.alive()
        assert any(socket._frames is not None for socket in open_sockets(client.broker))
        for _ in range(3000):
            assert isinstance(await greedy.event(), Pong)
        await greedy.alive()


async def test_frames_that_come_with_the_upgrade_are_handled() -> None:
    async with websockets() as client:
        stream = await client.http.connect()
        head = f"GET /ws/{PRODUCER} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        keys = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        await stream.send_all((head + keys).encode() + b"\x81\x80\x00\x00\x00\x00")
        data = b""
        while b"send-error:3" not in data:
            piece = bytes(await stream.receive_some(1 << 16))
            assert piece
            data += piece
        assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in data
        await stream.aclose()


async def test_a_client_that_closes_gets_its_close_frame_back() -> None:
    async with websockets() as client:
        consumer = await client.talk(CONSUMER)
        await consumer.stream.send_all(consumer.protocol.send(CloseConnection(code=1000)))
        assert await consumer.closing() == (1000, "")
        await client.publish("for nobody")
        (topic,) = client.broker.loaded_topics()
        assert not topic.subscriptions["sub"].consumers


async def test_a_silent_connection_ends_after_its_idle_timeout(autojump_clock: object) -> None:
    async with websockets(Config(webSocketSessionIdleTimeoutMillis=10_000)) as client:
        consumer = await client.talk(CONSUMER)
        await trio.sleep(6)
        await consumer.alive()
        await trio.sleep(6)
        await consumer.alive()
        assert await consumer.closing() == (1001, "Connection Idle Timeout")


async def test_the_broker_pings_at_the_configured_interval(autojump_clock: object) -> None:
    async with websockets(Config(webSocketPingDurationSeconds=5, webSocketSessionIdleTimeoutMillis=0)) as client:
        consumer = await client.talk(CONSUMER)
        event = await consumer.event()
        assert type(event).__name__ == "Ping"


async def test_a_consumer_that_does_not_read_holds_back_only_itself() -> None:
    async with websockets() as client:
        slow = await client.talk(f"{CONSUMER}-slow", "subscriptionType=Shared")
        quick = await client.talk(CONSUMER)
        producer = await client.talk(PRODUCER)
        size, count = 100_000, 60
        for _ in range(count):
            assert (await producer.ask(message("x" * size)))["result"] == "ok"
            await quick.send({"messageId": (await quick.frame())["messageId"]})
        waiting = max(socket._size for socket in open_sockets(client.broker))
        assert waiting < 4 << 20
        assert len(await slow.texts(count)) == count


@pytest.mark.parametrize("path", ["v2/producer/x", "v2/nothing/x", "v3/producer/x"])
async def test_without_the_service_there_are_no_paths(path: str) -> None:
    async with websockets(Config(webSocketServiceEnabled=False)) as client:
        assert (await client.talk(path)).status == 404
