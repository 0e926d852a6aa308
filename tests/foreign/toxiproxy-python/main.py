"""Drive the control API at port sys.argv[1] with toxiproxy-python. The upstream sys.argv[2] echoes."""

from __future__ import annotations

import socket
import sys

from toxiproxy import Toxiproxy

HELLO = b"hello"


def dial(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def read(connection: socket.socket) -> bytes:
    data = b""
    while len(data) < len(HELLO) and (piece := connection.recv(len(HELLO))):
        data += piece
    return data


def main(port: str, upstream: str) -> None:
    client = Toxiproxy()
    client.update_api_consumer("127.0.0.1", int(port))
    assert client.running()
    assert b"2." in client.version()
    proxy = client.create(upstream, "python")
    assert [*client.proxies()] == ["python"]
    print("created")
    with dial(proxy.listen) as connection:
        connection.sendall(HELLO)
        assert read(connection) == HELLO
        print("echoed")
        for kind, stream, toxicity, attributes in (
            ("latency", "downstream", 1.0, {"latency": 1, "jitter": 1}),
            ("bandwidth", "upstream", 1.0, {"rate": 1000}),
            ("slow_close", "downstream", 1.0, {"delay": 1}),
            ("slicer", "downstream", 1.0, {"average_size": 2, "size_variation": 1, "delay": 1}),
            ("timeout", "downstream", 0.5, {"timeout": 60_000}),
            ("reset_peer", "upstream", 1.0, {"timeout": 60_000}),
            ("limit_data", "downstream", 1.0, {"bytes": 1_000_000}),
        ):
            proxy.add_toxic(name=kind, type=kind, stream=stream, toxicity=toxicity, attributes=attributes)
        assert len(proxy.toxics()) == 7
        assert proxy.get_toxic("latency").attributes == {"latency": 1, "jitter": 1}
        assert proxy.get_toxic("timeout").toxicity == 0.5
        print("seven toxics")
    assert client.reset()
    assert proxy.toxics() == {}
    print("reset")
    proxy.add_toxic(name="cut", type="bandwidth", attributes={"rate": 0})
    with dial(proxy.listen) as connection:
        connection.sendall(HELLO)
        connection.settimeout(0.1)
        try:
            raise AssertionError(connection.recv(1))
        except TimeoutError:
            print("cut")
        connection.settimeout(60)
        assert proxy.destroy_toxic("cut")
        assert read(connection) == HELLO
        print("restored")
    proxy.add_toxic(name="limit", type="limit_data", attributes={"bytes": 2})
    with dial(proxy.listen) as connection:
        connection.sendall(HELLO)
        assert read(connection) == HELLO[:2]
        print("limited")
    with proxy.down():
        try:
            dial(proxy.listen).close()
            raise AssertionError("not disabled")
        except ConnectionRefusedError:
            print("disabled")
    dial(proxy.listen).close()
    print("enabled")
    client.destroy_all()
    assert client.proxies() == {}
    print("deleted")


main(*sys.argv[1:])
