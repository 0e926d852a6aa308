"""Lookups over HTTP: requests, credentials, and answers of any kind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias, cast

import anyio
import httpx
import pytest
from trio.testing import MockClock

from pulsarium.client import errors
from pulsarium.client.connection.http_lookup import HttpLookup
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both

TOPIC = "persistent://public/default/a b%c"
HERE: dict[str, Any] = {
    "brokerUrl": "pulsar://b:1",
    "brokerUrlTls": "pulsar+ssl://b:2",
    "httpUrl": "http://b:3",
    "brokerUrlSsl": "",
}

Answer: TypeAlias = httpx.Response | Callable[[httpx.Request], Coroutine[Any, Any, httpx.Response]]


class Dialled:
    """A pool that only records the addresses of connections."""

    def __init__(self) -> None:
        self.to: list[BrokerAddress] = []

    async def get(self, address: BrokerAddress, proxy_to: BrokerAddress | None = None) -> BrokerAddress:
        self.to.append(address)
        return address


class Web:
    """A web server that answers requests in order, and repeats the last answer."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    @property
    def urls(self) -> list[str]:
        return [str(request.url) for request in self.requests]

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, httpx.Response) else await answer(request)

    def lookup(self, url: str = "http://a:8080", **settings: Any) -> tuple[HttpLookup, Dialled]:
        pool = Dialled()
        lookup = HttpLookup(cast(Pool, pool), url, Settings(**settings))
        lookup._transport._http = dict.fromkeys(
            (False, True), httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        )
        return lookup, pool


def json(code: int = 200, **fields: object) -> httpx.Response:
    return httpx.Response(code, json=fields)


def to(url: str) -> httpx.Response:
    return httpx.Response(307, headers={"location": url})


@on_both
async def test_the_client_connects_where_the_answer_says() -> None:
    web = Web(json(**HERE))
    lookup, pool = web.lookup()
    await lookup.connection_for(TOPIC)
    assert pool.to == [BrokerAddress("b", 1)]
    assert web.urls == ["http://a:8080/lookup/v2/topic/persistent/public/default/a+b%25c"]
    assert "authorization" not in web.requests[0].headers


@on_both
async def test_over_https_with_tls() -> None:
    lookup, pool = Web(json(**HERE)).lookup("https://a:8443")
    await lookup.connection_for(TOPIC)
    assert pool.to == [BrokerAddress("b", 2, True)]


@on_both
async def test_a_listener_is_asked_for() -> None:
    web = Web(json(**HERE))
    lookup, _ = web.lookup(listener_name="out side")
    await lookup.connection_for("t")
    assert web.requests[0].url.params["listenerName"] == "out side"


@on_both
async def test_an_http_lookup_of_a_broker_without_such_a_port_is_refused() -> None:
    lookup, _ = Web(json(brokerUrl="pulsar://b:1")).lookup("https://a:8443")
    with pytest.raises(errors.OperationNotSupported, match="without TLS only"):
        await lookup.connection_for("t")
    lookup, _ = Web(json()).lookup()
    with pytest.raises(errors.ConnectError, match="named no broker"):
        await lookup.connection_for("t")
    lookup, _ = Web(json(brokerUrlTls="pulsar://b:1")).lookup("https://a:8443")
    with pytest.raises(errors.InvalidUrl, match="must begin with pulsar\\+ssl"):
        await lookup.connection_for("t")


@on_both
async def test_redirects_have_an_end() -> None:
    web = Web(to("http://a:8080/again"))
    lookup, _ = web.lookup(max_lookup_redirects=3)
    with pytest.raises(errors.ConnectError, match="redirects in a circle"):
        await lookup.connection_for("t")
    assert len(web.requests) == 4


@pytest.mark.parametrize("where", ["file:///etc/passwd", "http://", "http://a:99999/", "http://[/", "gopher://a"])
@on_both
async def test_redirects_to_nowhere_are_a_lost_connection(where: str) -> None:
    lookup, _ = Web(to(where)).lookup()
    with pytest.raises(errors.ConnectError):
        await lookup.connection_for("t")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (403, errors.AuthorizationError),
        (404, errors.TopicNotFound),
        (405, errors.NotAllowedError),
        (412, errors.InvalidTopicName),
        (429, errors.TooManyLookupRequestException),
        (500, errors.UnknownError),
        (503, errors.ServiceUnitNotReady),
    ],
)
@on_both
async def test_each_status_of_a_lookup_is_raised_as_its_error(status: int, expected: type[errors.PulsarError]) -> None:
    lookup, _ = Web(json(status, reason="so it is")).lookup()
    with pytest.raises(expected, match="so it is") as caught:
        await lookup.partitions("t")
    assert type(caught.value) is expected


@on_both
async def test_401_is_said_by_two() -> None:
    """Pulsar's authentication filter answers 401 to wrong credentials, and its REST API to a missing permission."""
    lookup, _ = Web(json(401, message="Authentication required", status="401")).lookup()
    with pytest.raises(errors.AuthenticationError, match="Authentication required"):
        await lookup.partitions("t")
    lookup, _ = Web(json(401, reason="Unauthorized to validateTopicOperation")).lookup()
    with pytest.raises(errors.AuthorizationError, match="validateTopicOperation"):
        await lookup.partitions("t")


@on_both
async def test_a_long_story_is_cut() -> None:
    lookup, _ = Web(json(500, reason="x" * 1_000_000)).lookup()
    with pytest.raises(errors.UnknownError) as caught:
        await lookup.partitions("t")
    assert len(str(caught.value)) == errors.MOST_TEXT


@on_both
async def test_partitions_are_counted_over_http() -> None:
    web = Web(json(partitions=3, deleted=False))
    lookup, _ = web.lookup()
    assert await lookup.partitions("non-persistent://a/b/c") == 3
    assert await lookup.partitions("t", create=False) == 3
    assert web.urls == [
        "http://a:8080/admin/v2/non-persistent/a/b/c/partitions?checkAllowAutoCreation=true",
        "http://a:8080/admin/v2/persistent/public/default/t/partitions?checkAllowAutoCreation=false",
    ]


@on_both
async def test_topics_are_listed_over_http() -> None:
    names = ["persistent://a/b/t", "persistent://a/b/p-partition-0"]
    web = Web(httpx.Response(200, json=names))
    lookup, _ = web.lookup()
    assert await lookup.topics("a/b", pb.CommandGetTopicsOfNamespace.NON_PERSISTENT) == names
    assert web.urls == ["http://a:8080/admin/v2/namespaces/a/b/topics?mode=NON_PERSISTENT"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"3", b'"three"', b'{"partitions": "3"}', b'{"partitions": -1}', b"{}", b"\xff", b"[" * 100_000],
    ids=lambda body: repr(body[:20]),
)
@on_both
async def test_answers_that_make_no_sense(body: bytes) -> None:
    lookup, _ = Web(httpx.Response(200, content=body)).lookup()
    with pytest.raises(errors.ConnectError, match="is invalid"):
        await lookup.partitions("t")


@on_both
async def test_an_answer_without_end() -> None:
    sent = 0

    async def endless(request: httpx.Request) -> httpx.Response:
        async def body() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 1
                await anyio.lowlevel.checkpoint()
                yield bytes(1024 * 1024)

        return httpx.Response(200, content=body())

    lookup, _ = Web(endless).lookup()
    with pytest.raises(errors.ConnectError, match="more than"):
        await lookup.topics("a/b", pb.CommandGetTopicsOfNamespace.ALL)
    assert sent < 100


@on_both
async def test_a_lookup_goes_on_to_the_next_address() -> None:
    async def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody there")

    web = Web(refuse, json(partitions=1))
    lookup, _ = web.lookup("http://a:1,b:2")
    assert await lookup.partitions("t") == 1
    assert [request.url.host for request in web.requests] == ["a", "b"]
    lookup, _ = Web(refuse).lookup("http://a:1,b:2")
    with pytest.raises(errors.ConnectError, match="nobody there"):
        await lookup.partitions("t")


async def test_a_lookup_without_an_answer_times_out(autojump_clock: MockClock) -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    lookup, _ = Web(hang).lookup(operation_timeout=5)
    start = anyio.current_time()
    with pytest.raises(errors.Timeout, match="in 5 s"):
        await lookup.partitions("t")
    assert anyio.current_time() - start == pytest.approx(5)


def test_http_libraries_are_not_imported_for_binary_lookups() -> None:
    program = "import sys, pulsarium.client; assert not {'httpx', 'http.client'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
