"""Answers to lookups that lead nowhere, redirect without end, or claim too many partitions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pulsarium.client import errors
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.hostile.left_over import connections_of
from tests.client.hostile.played import URL, Connect, playing, saying
from tests.client.peer import Peer, Type

Redirect = pb.CommandLookupTopicResponse.Redirect

GARBAGE = [
    "",
    "x",
    "pulsar://",
    "pulsar://:1",
    "pulsar://a:0",
    "pulsar://a:65536",
    "pulsar://a:-1",
    "pulsar://a:" + "9" * 5000,
    "pulsar://a:٣",
    "http://a:8080",
    "pulsar://[::1",
    "pulsar://,,,",
    "pulsar+ssl://a:6651",
    "x" * 1_000_000,
    b"\xff\xfe",
]


@pytest.mark.parametrize("url", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("response", [Connect, Redirect], ids=["connect", "redirect"])
@on_both
async def test_a_lookup_that_leads_to_no_url_is_refused(response: Any, url: str | bytes) -> None:
    async with playing() as (played, client):

        async def astray(peer: Peer, body: Any) -> None:
            text = url if isinstance(url, bytes) else url.encode()
            field = b"\x0a" + _varint(len(text)) + text
            answer = pb.CommandLookupTopicResponse(request_id=body.request_id, response=response)
            answer.MergeFromString(field)
            base = pb.BaseCommand(type=Type.LOOKUP_RESPONSE)
            base.lookupTopicResponse.CopyFrom(answer)
            await peer.stream.send(_framed(base))

        played.on[Type.LOOKUP] = astray
        with pytest.raises(errors.PulsarError):
            async with client.create_producer("t"):
                pass


@on_both
async def test_redirects_to_itself_without_end() -> None:
    async with playing() as (played, client):
        played.on[Type.LOOKUP] = saying(Type.LOOKUP_RESPONSE, response=Redirect, brokerServiceUrl=URL)
        with pytest.raises(errors.ConnectError, match="was redirected more than"):
            async with client.subscribe("t", "s"):
                pass
        assert len(connections_of(client)) == 1


@on_both
async def test_redirects_to_ever_new_brokers() -> None:
    """`playing` checks that the client forgets the connections once the brokers have closed them."""
    ports = itertools.count(10_000)
    async with playing() as (played, client):

        async def onward(peer: Peer, body: Any) -> None:
            url = f"pulsar://a:{next(ports)}"
            await peer.say(Type.LOOKUP_RESPONSE, request_id=body.request_id, response=Redirect, brokerServiceUrl=url)

        played.on[Type.LOOKUP] = onward
        with pytest.raises(errors.ConnectError, match="was redirected more than"):
            async with client.subscribe("t", "s"):
                pass
        for peer in played.connections:
            await peer.close()


@pytest.mark.parametrize("partitions", [2**20, 2**31, 2**32 - 1])
@on_both
async def test_more_partitions_than_there_can_be(partitions: int) -> None:
    async with playing() as (played, client):
        played.on[Type.PARTITIONED_METADATA] = saying(Type.PARTITIONED_METADATA_RESPONSE, partitions=partitions)
        with pytest.raises(errors.PulsarError, match="partitions"):
            async with client.create_producer("t"):
                pass
        with pytest.raises(errors.PulsarError, match="partitions"):
            async with client.subscribe("t", "s"):
                pass


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def _framed(base: pb.BaseCommand) -> bytes:
    return frame(base.SerializeToString())
