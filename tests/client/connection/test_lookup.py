"""Choice of a broker's address: with TLS or without, directly or through the service URL."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from pulsarium.client.connection.connection import Reply
from pulsarium.client.connection.lookup import BinaryLookup, connection_to
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import Address, BrokerUrls, parse
from pulsarium.client.errors import OperationNotSupported
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Response = pb.CommandLookupTopicResponse
BOTH = {"brokerServiceUrl": "pulsar://b:6650", "brokerServiceUrlTls": "pulsar+ssl://b:6651"}


class Answering:
    """A pool whose connections all give the same answer, and that records their addresses."""

    def __init__(self, **answer: Any) -> None:
        self.answer = Response(request_id=1, response=Response.Connect, **answer)
        self.asked: list[tuple[Address, Address | None]] = []

    async def get(self, address: Address, proxy_to: Address | None = None) -> Answering:
        self.asked.append((address, proxy_to))
        return self

    def next_request_id(self) -> int:
        return 1

    async def request(self, command: pb.BaseCommand) -> Reply:
        return Reply(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=self.answer), b"")


def where(service: str, **answer: Any) -> tuple[Address, Address | None]:
    """Return the address that the client connects to for a topic, and the address of the broker behind a proxy."""
    pool = Answering(**answer)
    lookup = BinaryLookup(cast(Pool, pool), parse(service))
    anyio.run(lookup.connection_for, "t")
    return pool.asked[-1]


def test_the_url_of_the_same_kind_is_taken() -> None:
    assert where("pulsar://a", **BOTH) == (Address("b", 6650), None)
    assert where("pulsar+ssl://a", **BOTH) == (Address("b", 6651, True), None)


def test_a_lookup_may_lead_through_the_service_url() -> None:
    proxied = {**BOTH, "proxy_through_service_url": True}
    assert where("pulsar://a", **proxied) == (Address("a", 6650), Address("b", 6650))
    assert where("pulsar+ssl://a", **proxied) == (Address("a", 6651, True), Address("b", 6651, True))


def test_a_broker_without_such_a_port() -> None:
    with pytest.raises(OperationNotSupported, match="without TLS only"):
        where("pulsar+ssl://a", brokerServiceUrl="pulsar://b:6650")
    with pytest.raises(OperationNotSupported, match="with TLS only"):
        where("pulsar://a", brokerServiceUrlTls="pulsar+ssl://b:6651")


def test_a_broker_that_another_named() -> None:
    pool = Answering()
    proxy = Address("a", 6651, True)
    anyio.run(
        lambda: connection_to(
            cast(Pool, pool), BrokerUrls(BOTH["brokerServiceUrl"], BOTH["brokerServiceUrlTls"]), tls=True, proxy=proxy
        )
    )
    assert pool.asked == [(Address("a", 6651, True), Address("b", 6651, True))]
