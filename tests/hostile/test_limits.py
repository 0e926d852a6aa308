"""Limits on the connections and requests of clients, with Pulsar's own configuration keys and error texts."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.session.session import open_session
from pulsarium.broker.web.http.server import Addresses
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.loopback import listening
from tests.broker.web.admin.rest import TENANTS as TENANTS_URL
from tests.broker.web.admin.rest import rest_of
from tests.broker.web.http.served import GET, answer, read, served
from tests.broker.wire import Type, Wire, serving

UNASKED = 2**64 - 1


async def refusal(wire: Wire) -> str:
    error = await wire.expect(Type.ERROR)
    assert (error.request_id, error.error) == (UNASKED, pb.NotAllowedError)
    assert await wire.closed() == []
    text: str = error.message
    return text


async def test_a_connection_beyond_the_maximum_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(Config(brokerMaxConnections=3)) as loopback:
        wires = [await loopback.connect() for _ in range(3)]
        for _ in range(3):
            assert await refusal(await loopback.dial()) == "Reached the maximum number of connections"
        assert "Reached the maximum number of connections" in caplog.text
        for wire in wires:
            await wire.alive()
        await loopback.hang_up(wires[0])
        await loopback.sessions(2)
        await loopback.connect()


async def test_a_connection_beyond_the_maximum_of_its_address_is_refused() -> None:
    async with listening(Config(brokerMaxConnectionsPerIp=2)) as loopback:
        wires = [await loopback.connect() for _ in range(2)]
        assert (await refusal(await loopback.dial())).startswith(
            "Reached the maximum number of connections on address/127.0.0.1:"
        )
        await loopback.hang_up(wires.pop())
        await loopback.sessions(1)
        await loopback.connect()


async def test_addresses_are_counted_apart(autojump_clock: object) -> None:
    async with serving(Config(brokerMaxConnectionsPerIp=1)) as bed:
        opened = [open_session(bed.broker, f"/10.0.0.{host}:1", Deaf()) for host in range(3)]
        assert not any(session.closed for session in opened)
        assert open_session(bed.broker, "/10.0.0.1:2", Deaf()).closed
        assert len(bed.broker.sessions) == 3
        for session in opened:
            bed.broker.close_session(session)


async def test_the_maximum_counts_connections_over_any_stream(autojump_clock: object) -> None:
    async with serving(Config(brokerMaxConnections=1)) as bed:
        wire = await bed.connect()
        assert await refusal(bed.dial()) == "Reached the maximum number of connections"
        await wire.alive()


class Deaf:
    """A transport that writes nothing."""

    def wake(self) -> None:
        return


async def test_without_the_keys_any_number(autojump_clock: object) -> None:
    async with serving() as bed:
        for _ in range(200):
            await bed.connect()


async def test_a_port_serves_so_many_http_connections_at_once() -> None:
    """Connections beyond the limit wait, as with Jetty's limit of connections."""
    async with served(Config(maxHttpServerConnections=2)) as http:
        first, second, third = [await http.connect() for _ in range(3)]
        for stream in (first, second):
            assert (await answer(stream))[1] == b'["public","pulsar"]'
        await third.send_all(GET)
        with trio.move_on_after(0.05) as patience:
            await third.receive_some(1)
        assert patience.cancelled_caught
        await first.aclose()
        assert (await read(third)).startswith(b"HTTP/1.1 200")
        await second.aclose()
        await third.aclose()


async def test_an_http_connection_beyond_the_maximum_of_its_address_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(Config(maxHttpServerConnectionsPerIp=2)) as http:
        first, second = [await http.connect() for _ in range(2)]
        for stream in (first, second):
            assert (await answer(stream))[0].startswith(b"HTTP/1.1 200")
        for _ in range(3):
            async with await http.connect() as third:
                head, body = await answer(third)
                assert head.startswith(b"HTTP/1.1 503")
                assert json.loads(body)["reason"] == (
                    "127.0.0.1 has 2 HTTP connections to this port already; close some, or set "
                    "maxHttpServerConnectionsPerIp higher"
                )
        assert len([each for each in caplog.records if "refusing HTTP connections" in each.getMessage()]) == 1
        assert (await answer(second))[0].startswith(b"HTTP/1.1 200")
        await first.aclose()
        while True:  # until the broker has noticed that the first connection is closed
            async with await http.connect() as next_one:
                if (await answer(next_one))[0].startswith(b"HTTP/1.1 200"):
                    break
        await second.aclose()


def test_addresses_of_http_clients_are_counted_apart() -> None:
    addresses = Addresses(1)
    with addresses.one_of("10.0.0.1") as first, addresses.one_of("10.0.0.2") as other:
        assert (first, other) == ("", "")
        with addresses.one_of("10.0.0.1") as second:
            assert second
    with addresses.one_of("10.0.0.1") as again:
        assert again == ""


def test_an_address_may_have_any_number_of_http_connections_where_the_key_is_0() -> None:
    addresses = Addresses(0)
    with ExitStack() as stack:
        assert {stack.enter_context(addresses.one_of("10.0.0.1")) for _ in range(5_000)} == {""}


@pytest.mark.parametrize("pieces", [1, 100])
async def test_the_head_of_a_request_may_be_so_large(pieces: int) -> None:
    async with served(Config(httpMaxRequestHeaderSize=2_000)) as http, await http.connect() as good:
        fits = GET.replace(b"Host: x", b"Host: x\r\nX: " + b"y" * 1_500)
        assert (await answer(good, fits))[0].startswith(b"HTTP/1.1 200")
        async with await http.connect() as bad:
            large = GET.replace(b"Host: x", b"Host: x\r\nX: " + b"y" * 3_000)
            for start in range(0, 1_900 if pieces > 1 else 0, pieces):
                await bad.send_all(large[start : start + pieces])
                await trio.testing.wait_all_tasks_blocked()
            await bad.send_all(large[1_900 if pieces > 1 else 0 :])
            assert (await read(bad)).startswith(b"HTTP/1.1 431")
        assert (await answer(good))[0].startswith(b"HTTP/1.1 200")


async def test_a_url_counts_too(autojump_clock: object) -> None:
    async with serving() as bed:
        rest = rest_of(bed)
        assert (await rest.call("GET", f"{TENANTS_URL}/{'x' * 9_000}")).status == 431
        assert (await rest.call("GET", TENANTS_URL, x="y" * 9_000)).status == 431
        assert (await rest.call("GET", f"{TENANTS_URL}/{'x' * 7_000}")).status == 404
