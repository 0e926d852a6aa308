"""Ports of another protocol than the URL says: the client raises an error at once, which names the URL to use."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from trio.testing import MockClock

from pulsarium.client import connect, errors
from pulsarium.client.connection import wrong_port
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.client.opening import open_client
from tests.client.both import FIRST_FAILURE, on_both, run_on
from tests.client.hostile import clocks
from tests.client.hostile.played import playing
from tests.client.peer import Peers
from tests.client.refusing import refusing_port, saying

A_HTTP_REFUSAL = b"HTTP/1.1 400 Illegal character CNTL=0x0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
A_TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x46"


async def answer_all(peers: Peers, answer: bytes) -> None:
    """Send each client these bytes after its first ones, and close."""
    while True:
        peer = await peers.next()
        await peer.stream.receive()
        await peer.stream.send(answer)
        await peer.close()


async def told(url: str, answer: bytes, **settings: Any) -> tuple[errors.PulsarError, int]:
    """Return the error of a client after this answer to its first bytes, and its number of connections."""
    peers = Peers(**settings)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer_all, peers, answer)
        async with open_client(url, peers.settings) as client:
            with pytest.raises(errors.PulsarError) as failed:
                async with client.create_producer("t"):
                    pass
        tasks.cancel_scope.cancel()
    peers.close()
    return failed.value, len(peers.dialled)


@pytest.mark.parametrize(
    ("url", "answer", "says"),
    [
        ("pulsar://a:8080", A_HTTP_REFUSAL, "a:8080: HTTP answers there, as at the port of the admin API; "),
        ("pulsar://a:8080", A_HTTP_REFUSAL, "by default pulsar://a:6650"),
        ("pulsar://a:6651", A_TLS_ALERT, "a:6651: that port speaks TLS; connect to pulsar+ssl://a:6651"),
        ("pulsar+ssl://a:6650", A_HTTP_REFUSAL, "a:6650: that port does not speak TLS; connect to pulsar://a:6650"),
        ("pulsar+ssl://a:6650", b"no TLS here", "that port does not speak TLS"),
        (
            "pulsar://a:22",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "a:22: no Pulsar broker answers there: the answer begins with b'SSH-2.0-OpenSSH_'; the port of Pulsar's ",
        ),
        ("pulsar://a:25", b"no", "no Pulsar broker answers there: the answer begins with b'no'"),
    ],
)
@on_both
async def test_another_protocol_is_told_by_the_first_answer(url: str, answer: bytes, says: str) -> None:
    error, connections = await told(url, answer)
    assert isinstance(error, errors.WrongProtocol)
    assert says in str(error)
    assert connections == 1


@on_both
async def test_an_answer_in_pieces_is_recognized() -> None:
    peers = Peers()
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:

        async def serve() -> None:
            peer = await peers.next()
            for byte in A_HTTP_REFUSAL[:4]:
                await peer.stream.send(bytes([byte]))
            await peer.close()

        tasks.start_soon(serve)
        with pytest.raises(errors.WrongProtocol, match="HTTP answers there"):
            await client._core.brokers.partitions("t")
    peers.close()


def test_an_end_before_the_answer_is_tried_again_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """A broker that starts ends connections too, so only the log says that the port may be one for TLS."""

    async def test() -> None:
        error, connections = await told("pulsar://a:6651", b"", operation_timeout=3)
        assert isinstance(error, errors.ConnectError)
        assert not isinstance(error, errors.WrongProtocol)
        assert connections > 3

    run_on("trio", test, jump=True)
    said = "trying again: a:6651: closed before it answered; if it is a port for TLS, connect to pulsar+ssl://a:6651"
    assert caplog.messages == [said]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_waiting_client_warns_once_and_connects_when_the_broker_comes(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        peers = Peers(starting_backoff_interval=0.1, max_backoff_interval=0.1)
        a = BrokerAddress("a", 6650)
        peers.refused.add(a)
        async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:

            async def open_it() -> None:
                async with client.create_producer("t"):
                    opened.set()

            opened = anyio.Event()
            tasks.start_soon(open_it)
            await anyio.wait_all_tasks_blocked()
            assert peers.dialled
            peers.refused.clear()
            peer = await peers.next()
            await peer.take_in()
            await peer.lead_here()
            await peer.next()
            tasks.cancel_scope.cancel()
        await peer.close()
        peers.close()

    run_on(backend, test)
    assert caplog.messages == ["trying again: a:6650: connection refused"]


def test_a_broker_that_says_nothing_is_told_within_a_second(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async def hang(address: BrokerAddress) -> ByteStream:
            await anyio.sleep_forever()
            raise AssertionError

        async with open_client("pulsar://a", Settings(dial=hang)) as client:
            with anyio.move_on_after(1):
                await client._core.brokers.partitions("t")
            assert caplog.messages == ["trying again: a:6650: no answer yet"]

    run_on("trio", test, jump=True)


def test_an_open_connection_without_an_answer_is_told_as_such() -> None:
    async def test() -> None:
        peers = Peers(connection_timeout=2)
        async with open_client("pulsar://a:7", peers.settings) as client:
            with pytest.raises(errors.ConnectError) as failed:
                await client._core.brokers.partitions("t")
        await (await peers.next()).close()
        peers.close()
        assert str(failed.value) == (
            "a:7: connected, and no answer within 2 s: the broker hangs, or it is another server; the port of Pulsar's "
            "clients is by default pulsar://a:6650"
        )

    run_on("trio", test, jump=True)


async def test_a_client_that_connects_at_once_logs_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with playing() as (_, client), client.create_producer("t"):
        await anyio.sleep(5)
    assert caplog.messages == []


def test_the_reason_of_a_wait_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        from pulsarium.client.connection.waiting import WaitingLog

        waiting = WaitingLog()
        for _ in range(61):
            waiting.tell(errors.ConnectError("a"))
            await anyio.sleep(1)

    run_on("trio", test, jump=True)
    assert len(caplog.records) == 2
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


@clocks.on_both
async def test_the_client_names_a_host_that_does_not_exist() -> None:
    async def unknown(address: BrokerAddress) -> ByteStream:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with open_client("pulsar://brokr", Settings(dial=unknown)) as client:
        with pytest.raises(errors.ConnectError, match=r"^brokr:6650: there is no such host \(Name or "):
            async with client.create_producer("t"):
                pass


@clocks.on_both
async def test_of_several_brokers_one_that_may_come_up_is_waited_for() -> None:
    """A broker that speaks another protocol does not end the wait for the others."""
    peers = Peers()
    peers.refused.add(BrokerAddress("b", 6650))
    async with anyio.create_task_group() as tasks, open_client("pulsar://a,b", peers.settings) as client:
        tasks.start_soon(answer_all, peers, A_HTTP_REFUSAL)
        with pytest.raises(errors.ConnectError, match="connection refused") as failed:
            async with client.create_producer("t"):
                pass
        assert type(failed.value) is errors.ConnectError
        assert len(peers.dialled) > 2
        tasks.cancel_scope.cancel()
    peers.close()


@on_both
async def test_lookups_over_http_where_there_is_no_tls() -> None:
    """The lookup uses httpx, which keeps Python's TLS error as the cause of an error of its own."""
    with saying(A_HTTP_REFUSAL) as port:
        async with connect(f"https://127.0.0.1:{port}") as client:
            with pytest.raises(errors.WrongProtocol, match=f"connect to http://127.0.0.1:{port}"):
                async with client.create_producer("t"):
                    pass


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\5nonsense\r\n\r\n"], ids=["an end", "a frame"])
@on_both
async def test_lookups_over_http_at_the_port_of_clients(answer: bytes) -> None:
    """A real broker ends the connection."""
    with saying(answer) as port:
        async with connect(f"http://127.0.0.1:{port}", **FIRST_FAILURE) as client:
            with pytest.raises(
                errors.ConnectError, match="; the port may be for Pulsar clients or for https://; HTTP "
            ):
                async with client.create_producer("t"):
                    pass


@on_both
async def test_lookups_over_http_where_nobody_listens() -> None:
    with refusing_port() as port:
        async with connect(f"http://127.0.0.1:{port}", **FIRST_FAILURE) as client:
            with pytest.raises(errors.ConnectError, match=f"^http://127.0.0.1:{port}: connection refused$"):
                async with client.create_producer("t"):
                    pass


def test_a_certificate_of_another_host_is_told_from_one_that_is_not_trusted() -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 62, "Hostname mismatch, certificate is not valid for 'a'."
    assert str(wrong_port.in_handshake("a:6651", "pulsar://a:6651", error)) == (
        "a:6651: Hostname mismatch, certificate is not valid for 'a'; connect by a name that the certificate has, or "
        "with tls_validate_hostname=False"
    )
