"""Service URLs and their errors."""

from __future__ import annotations

import pytest

from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls, parse
from pulsarium.client.errors import (
    BY_CODE,
    MOST_TEXT,
    ConnectError,
    InvalidUrl,
    OperationNotSupported,
    PulsarError,
    TopicNotFound,
    UnknownError,
    error_of,
)
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("pulsar://localhost:6650", [("localhost", 6650)]),
        ("pulsar://localhost", [("localhost", 6650)]),
        ("pulsar://a:1,b,c:3/", [("a", 1), ("b", 6650), ("c", 3)]),
        ("pulsar://[::1]:6651", [("::1", 6651)]),
        ("pulsar://[::1]", [("::1", 6650)]),
    ],
)
def test_a_url_gives_its_addresses(url: str, addresses: list[tuple[str, int]]) -> None:
    assert parse(url) == [BrokerAddress(*address) for address in addresses]


def test_an_address_as_text() -> None:
    assert [str(address) for address in parse("pulsar://a:1,[::1]:2")] == ["a:1", "[::1]:2"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6650",
        "http://a:1",
        "pulsar://",
        "pulsar://a:x",
        "pulsar://a:70000",
        "pulsar://a:0",
        "pulsar://a:" + "9" * 5000,
        "pulsar://a b",
        "pulsar://a\0:1",
        "pulsar://a/b",
        "pulsar://user@a",
        "pulsar://a,,b",
        "pulsar://" + "x" * 5_000_000,
    ],
    ids=lambda url: url[:20],
)
def test_a_text_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse(url)
    assert len(str(caught.value)) < 500


def test_the_scheme_says_whether_tls_is_spoken() -> None:
    assert parse("pulsar+ssl://a,b:1") == [BrokerAddress("a", 6651, True), BrokerAddress("b", 1, True)]


def test_a_broker_by_its_urls() -> None:
    both = BrokerUrls("pulsar://a:1", "pulsar+ssl://a:2")
    assert both.address(tls=False) == BrokerAddress("a", 1)
    assert both.address(tls=True) == BrokerAddress("a", 2, True)
    with pytest.raises(OperationNotSupported, match="with TLS only"):
        BrokerUrls("", "pulsar+ssl://a:2").address(tls=False)
    with pytest.raises(OperationNotSupported, match="without TLS only"):
        BrokerUrls("pulsar://a:1", "").address(tls=True)
    with pytest.raises(InvalidUrl, match="must begin with pulsar\\+ssl"):
        BrokerUrls("", "pulsar://a:1").address(tls=True)
    with pytest.raises(ConnectError, match="named no broker"):
        BrokerUrls("", "").address(tls=False)


def test_every_server_error_has_a_class_of_its_own() -> None:
    codes = set(pb.ServerError.values())
    assert BY_CODE.keys() == codes
    assert len(set(BY_CODE.values())) == len(codes)
    assert all(issubclass(kind, PulsarError) for kind in BY_CODE.values())


def test_errors_say_what_the_broker_said() -> None:
    error = error_of(pb.TopicNotFound, "gone")
    assert (type(error), str(error)) == (TopicNotFound, "gone")
    assert len(str(error_of(pb.TopicNotFound, "x" * 5_000_000))) == MOST_TEXT
    assert (type(error_of(999, "")), str(error_of(999, ""))) == (UnknownError, "the broker answered with error 999")


@pytest.mark.parametrize("scheme", ["", "http://", "pulsar://", "pulsar://a,"])
@pytest.mark.parametrize("password", ["geheim", "ge:heim", "geh/eim", "geh,eim", "g@eheim", "g\neheim"])
def test_a_password_in_a_url_is_in_no_error(scheme: str, password: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse(f"{scheme}user:{password}@host:1")
    assert "eim" not in str(caught.value)
