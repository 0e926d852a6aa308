"""Calls over real connections, to a server on loopback that answers as it is told."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from pulsarium.cli.admin.api import Api, done
from pulsarium.cli.admin.errors import AdminError, NotConnected, ServerError, Unreachable
from pulsarium.rest.exchange import NO_BODY, NO_CALL, RestRequest
from pulsarium.rest.group import text_of
from tests.cli.admin.answering import Server, running
from tests.client.refusing import refusing_port, saying

server = pytest.fixture(running, name="server")
other = pytest.fixture(running, name="other")


def api_of(*urls: str, **headers: str) -> Api:
    return Api(urls, headers, None, 10)


def call(api: Api, method: str, path: str, *, query: Mapping[str, object] | None = None, body: object = NO_BODY) -> Any:
    """Send a request, and return the answer as JSON."""
    return done(api.send(RestRequest(method, path, query or {}, body))).data()


@contextmanager
def nobody() -> Iterator[str]:
    """Yield a URL where no program listens."""
    with refusing_port() as port:
        yield f"http://127.0.0.1:{port}"


def test_a_call_sends_method_path_query_and_body(server: Server) -> None:
    query = {"a": True, "b": None, "c": ["x", "y z"], "d": 5}
    assert call(api_of(server.url + "/"), "PUT", "x/y", query=query, body={"k": [1]}) is None
    ((method, target, headers, body),) = server.seen
    assert (method, target) == ("PUT", "/admin/v2/x/y?a=true&c=x&c=y+z&d=5")
    assert (headers["Content-Type"], headers["Accept"]) == ("application/json", "application/json")
    assert json.loads(body) == {"k": [1]}


def test_a_path_of_its_own_and_its_query(server: Server) -> None:
    call(api_of(server.url), "GET", "/lookup/v2/x?a=1", query={"b": 2})
    assert server.seen[0][1] == "/lookup/v2/x?a=1&b=2"


@pytest.mark.parametrize(
    ("body", "data", "text"),
    [
        (b"", None, ""),
        (b"null", None, "null"),
        (b'{"a": 1}', {"a": 1}, '{"a": 1}'),
        (b"ok", "ok", "ok"),
        (b"4.2.4", "4.2.4", "4.2.4"),
        (b"5", 5, "5"),
        (b'"BACKWARD"', "BACKWARD", '"BACKWARD"'),
    ],
)
def test_an_answer_is_read_as_data_and_as_text(body: bytes, data: object, text: str, server: Server) -> None:
    server.answers["/admin/v2/x"] = 200, {}, body
    assert call(api_of(server.url), "GET", "x") == data
    assert text_of(done(api_of(server.url).send(RestRequest("GET", "x")))) == text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"reason": "Tenant does not exist"}', "Tenant does not exist"),
        (b'{"servlet": "x", "message": "Not Found", "url": "/x", "status": "404"}', f"Not Found{NO_CALL}"),
        (b'{"reason": null}', "HTTP 404 Not Found"),
        (b"", "HTTP 404 Not Found"),
        (b"[]", "HTTP 404 Not Found"),
        (b"Unrecognized token 'x'", "Unrecognized token 'x'"),
        (b"<!DOCTYPE html><HTML>oops</HTML>", "HTTP 404 Not Found"),
        (b"\xff", "�"),
    ],
)
def test_a_refusal_has_the_text_of_the_broker(body: bytes, message: str, server: Server) -> None:
    server.answers["/admin/v2/x"] = 404, {}, body
    with pytest.raises(ServerError) as refused:
        call(api_of(server.url), "GET", "x")
    assert (refused.value.status, refused.value.message) == (404, message)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_commands_follow_a_redirect_with_method_body_and_credentials(
    status: int, server: Server, other: Server
) -> None:
    server.answers["/admin/v2/x"] = status, {"Location": f"{other.url}/admin/v2/x?authoritative=true"}, b""
    other.answers["/admin/v2/x"] = 200, {}, b'"here"'
    assert call(api_of(server.url, Authorization="Bearer t"), "POST", "x", body=[1]) == "here"
    ((method, target, headers, body),) = other.seen
    assert (method, target, headers["Authorization"], body) == (
        "POST",
        "/admin/v2/x?authoritative=true",
        "Bearer t",
        b"[1]",
    )


def test_a_redirect_within_a_broker(server: Server) -> None:
    server.answers["/admin/v2/x"] = 307, {"Location": "/admin/v2/y"}, b""
    server.answers["/admin/v2/y"] = 200, {}, b"1"
    assert call(api_of(server.url), "GET", "x") == 1


def test_redirects_in_a_circle_end(server: Server) -> None:
    server.answers["/admin/v2/x"] = 307, {"Location": "/admin/v2/x"}, b""
    with pytest.raises(AdminError, match="circle"):
        call(api_of(server.url), "GET", "x")
    assert len(server.seen) == 11


def test_a_command_says_that_nobody_listens() -> None:
    with nobody() as url, pytest.raises(Unreachable) as failed:
        call(api_of(url), "GET", "x")
    assert failed.value.message.startswith(f"cannot connect to {url}: connection refused; ")
    assert "pulsarium serve" in failed.value.message
    assert "--admin-url" in failed.value.message


def test_the_next_of_several_is_tried(server: Server) -> None:
    server.answers["/admin/v2/x"] = 200, {}, b"1"
    with nobody() as one, nobody() as other:
        assert call(api_of(one, server.url), "GET", "x") == 1
        with pytest.raises(Unreachable):
            call(api_of(one, other), "GET", "x")


def test_a_refusal_is_not_asked_of_the_next(server: Server, other: Server) -> None:
    server.answers["/admin/v2/x"] = 500, {}, b""
    with pytest.raises(ServerError, match="HTTP 500 Internal Server Error"):
        call(api_of(server.url, other.url), "GET", "x")
    assert other.seen == []


def test_a_command_gives_up_an_answer_that_does_not_come() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match=r"did not answer within 0.5 s") as failed:
            call(Api((url,), {}, None, 0.5), "GET", "x")
    assert "--request-timeout" in failed.value.message


@pytest.mark.parametrize(
    ("scheme", "answer", "message", "remedy"),
    [
        (
            "http",
            b"\x00\x00\x00\x10nonsense\r\n\r\n",
            "{} does not answer in HTTP",
            "the port may be for Pulsar clients",
        ),
        ("http", b"", "{} does not answer in HTTP", "for Pulsar clients or for https://"),
        ("http", None, "{} does not answer in HTTP", "HTTP is by default at port 8080; compare --admin-url"),
        ("https", b"HTTP/1.1 400 \r\n\r\n", "{} does not speak TLS", "use http://127.0.0.1:"),
        ("https", b"", "{} closed the connection in the TLS handshake", "use http://127.0.0.1:"),
    ],
)
def test_another_protocol_at_the_port_is_named_with_a_remedy(
    scheme: str, answer: bytes | None, message: str, remedy: str
) -> None:
    with saying(answer) as port:
        url = f"{scheme}://127.0.0.1:{port}"
        with pytest.raises(Unreachable) as failed:
            call(Api((url,), {}, ssl.create_default_context(), 10), "GET", "x")
    assert failed.value.message.startswith(f"{message.format(url)}; ")
    assert remedy in failed.value.message


def test_a_host_that_there_is_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unreachable) as failed:
        call(api_of("http://brokr:8080"), "GET", "x")
    assert failed.value.message.startswith("cannot connect to http://brokr:8080: no such host; ")


def test_a_call_that_was_sent_is_not_sent_again(server: Server) -> None:
    """The server may have done the call already."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable) as failed:
            call(Api((url, server.url), {}, None, 0.5), "GET", "x")
    assert not isinstance(failed.value, NotConnected)
    assert server.seen == []
