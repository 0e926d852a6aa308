"""Input that claims to be large, deep or many. The broker refuses it, or handles it without trusting the claim.

If the broker's work grew with a claim, or with the square of the bytes sent, the test would reach its time limit.

Other tests: frames that are too large or broken are in tests/broker/session/test_wrong_frames.py, such bodies of HTTP
in tests/broker/web/http/test_resource.py, and claims of brokers to our client in tests/client/hostile/test_claims.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from pulsarium.broker.config import profile_of
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import by_token
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, TOPICS, rest_of
from tests.broker.wire import TOPIC, Bed, Earliest, KeyShared, Shared, Type, Wire, command, plain, serving
from tests.hostile.claims import frugal

MB = 1 << 20
NESTED = b"[" * 100_000 + b"]" * 100_000
DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_an_ack_of_very_many_messages(bed: Bed, type: int) -> None:
    wire, other = await bed.connect(), await bed.connect()
    await wire.producer()
    position, *_ = await wire.publish(plain(b"x"), plain(b"y"))
    await wire.subscribe(type=type, initialPosition=Earliest)
    await wire.flow()
    await wire.messages(2)
    ids = [{"ledgerId": position.ledger_id, "entryId": number} for number in range(200_000)]
    ack = command(Type.ACK, consumer_id=0, message_id=ids, ack_type=pb.CommandAck.Individual, request_id=7)
    data = frame(ack.SerializeToString())
    assert len(data) > MB
    await wire.write(data)
    await wire.expect(Type.ACK_RESPONSE)
    await other.alive()


@pytest.mark.serving(profile=profile_of("pip", pip=[493]))
async def test_negative_acknowledgement_of_very_many_messages(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    position, *_ = await wire.publish(plain(b"x", partition_key="k"))
    await wire.subscribe(type=KeyShared, initialPosition=Earliest)
    await wire.flow()
    await wire.messages(1)
    ids: list[dict[str, Any]] = [{"ledgerId": position.ledger_id, "entryId": number} for number in range(100_000)]
    await wire.send(Type.NEGATIVE_ACK, consumer_id=0, negative_acked=ids, returned=ids)
    await wire.redeliver([position])
    assert await wire.payloads(1) == [b"x"]


async def test_redelivery_of_very_many_messages(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    position, *_ = await wire.publish(plain(b"x"))
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.flow()
    await wire.messages(1)
    ids = [{"ledgerId": position.ledger_id, "entryId": number} for number in range(200_000)]
    await wire.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0, message_ids=ids)
    assert await wire.payloads(1) == [b"x"]


@pytest.mark.req("C-01")
async def test_a_subscribe_with_more_metadata_than_is_taken(bed: Bed, wire: Wire) -> None:
    many = [{"key": f"k{number}", "value": "v" * 10} for number in range(150_000)]
    code, text = await wire.refused(
        Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0, metadata=many
    )
    assert (code, "metadata" in text.lower()) == (pb.MetadataError, True), text
    code, text = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=0, metadata=many)
    assert (code, "metadata" in text.lower()) == (pb.MetadataError, True), text
    assert not bed.broker.cluster.topics.loaded.get(TOPIC)


@pytest.mark.req("B-38")
@pytest.mark.parametrize("pattern", ["public/default/(a+)+$", "(.*)*x", "(a|a)*b", "(?=(a+)+b).*", "x" * (4 * MB)])
async def test_patterns_that_take_other_engines_for_ever(pattern: str, bed: Bed, wire: Wire) -> None:
    for number in range(5):
        await wire.producer(f"persistent://public/default/{'a' * 60}{number}", producer_id=number)
    await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default", topics_pattern=pattern)
    await wire.request(
        Type.WATCH_TOPIC_LIST, namespace="public/default", topics_pattern=pattern, watcher_id=1, topics_hash=""
    )


@pytest.mark.parametrize(
    "head",
    [
        b"\x0b" * (4 * MB),  # groups within groups
        b"\x08\x06" + b"\x7b" * MB,  # a SEND with unknown groups
        b"\x08\x06\x3a" + b"\xff\xff\xff\xff\x0f",  # a field that claims to be longer than its frame
        b"\x08\x06" + b"\xfa\x7f\x01\x00" * MB,  # a million unknown fields
    ],
    ids=["groups", "unknown groups", "a long field", "many fields"],
)
async def test_nested_and_endless_commands(head: bytes, bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    wire, other = await bed.connect(), await bed.connect()
    with frugal(40 * MB):
        await wire.write(frame(head))
        assert await wire.closed() == []
    assert "closing connection" in caplog.text
    await other.alive()


@pytest.mark.parametrize(
    "entry",
    [
        b"\x00\x10\x00\x00" + b"\x0b" * MB,  # 1 MB of metadata: groups within groups
        b"\x7f\xff\xff\xff" + b"\x00" * 100,  # metadata that claims to be longer than its frame
        b"\x0e\x01\x00\x00\x00\x00\x7f\xff\xff\xff",  # the same with a wrong checksum
        b"\x0e\x02\x7f\xff\xff\xff\x00",  # broker entry metadata from a client
    ],
    ids=["groups", "beyond", "checksum", "broker's"],
)
async def test_metadata_that_cannot_be(entry: bytes, bed: Bed) -> None:
    """The topic, its consumers and REST may do anything with the entry, but later messages must still be delivered."""
    wire, other = await bed.connect(), await bed.connect()
    await other.producer(producer_id=1)
    await other.subscribe(initialPosition=Earliest)
    await other.flow()
    await wire.producer()
    with frugal(40 * MB):
        await wire.write(wire.sends(entry))
        await wire.rest()
        await other.publish(plain(b"after it"), producer_id=1)
        received = [each for each in await other.rest() if each.command.type == Type.MESSAGE]
        assert received[-1].trailing.endswith(b"after it")
        for path in ("stats", "internalStats"):
            await rest_of(bed).get(f"{TOPICS}/t/{path}")
        await rest_of(bed).call("GET", f"{TOPICS}/t/subscription/sub/position/1")


@pytest.mark.parametrize("body", [NESTED, DEEP], ids=["lists", "objects"])
async def test_json_that_nests_deeper_than_anything(body: bytes, bed: Bed) -> None:
    rest = rest_of(bed)
    calls = [
        ("PUT", f"{TENANTS}/t"),
        ("PUT", f"{NAMESPACES}/public/n"),
        ("POST", f"{NAMESPACES}/public/default/retention"),
        ("PUT", f"{TOPICS}/t"),
        ("PUT", f"{TOPICS}/t/partitions"),
        ("POST", f"{ADMIN}/schemas/public/default/t/schema"),
        ("POST", f"{TOPICS}/t/subscription/s/resetcursor"),
        ("PUT", f"{ADMIN}/clusters/c"),
        ("POST", "/lab/faults"),
        ("POST", "/lab/state/seed"),
    ]
    for method, url in calls:
        answer = await rest.call(method, url, body=body)
        assert 400 <= answer.status < 500, (method, url, answer)
    assert await rest.get(TENANTS) == ["public", "pulsar"]


@pytest.mark.parametrize(
    "definition", [NESTED, DEEP, b'{"type":"array","items":' * 50_000], ids=["lists", "objects", "avro"]
)
async def test_schemas_that_nest_deeper_than_anything(definition: bytes, bed: Bed, wire: Wire) -> None:
    schema = {"name": "s", "schema_data": definition, "type": pb.Schema.Avro}
    base = await wire.request(Type.PRODUCER, topic=TOPIC, producer_id=0, schema=schema)
    assert base.type == Type.ERROR


async def test_a_gigabyte_of_http_is_not_waited_for(bed: Bed) -> None:
    """The body comes in pieces, without an announced length. The broker keeps only a bounded part of it."""
    rest = rest_of(bed)
    pieces = 0

    def gigabyte() -> Iterator[bytes]:
        nonlocal pieces
        for _ in range(16_384):
            pieces += 1
            yield bytes(1 << 16)

    with frugal(30 * MB):
        answer = await rest.call("PUT", f"{TENANTS}/t", body=gigabyte())
    assert answer.status == 413
    assert pieces < 100


async def test_pieces_of_a_body_take_no_more_than_its_bytes(bed: Bed) -> None:
    body = b'{"allowedClusters":["standalone"]' + b" " * 100_000 + b"}"
    with frugal(MB):
        answer = await rest_of(bed).call("PUT", f"{TENANTS}/t", body=(body[i : i + 2] for i in range(0, len(body), 2)))
    assert answer.status == 204


@pytest.mark.parametrize(("path", "status"), [("/admin/v2/tenants/t", 401), ("/nothing", 404)])
async def test_a_body_that_is_refused_anyway_is_not_kept(path: str, status: int) -> None:
    async with serving(by_token()) as bed:
        with frugal(MB):
            answer = await rest_of(bed).call("PUT", path, body=(bytes(1 << 16) for _ in range(64)))
        assert answer.status == status


async def test_names_of_megabytes(bed: Bed, wire: Wire) -> None:
    """The broker may refuse or accept such names, but must still serve other connections."""
    other = await bed.connect()
    name = f"persistent://public/default/{'n' * (2 * MB)}"
    await wire.write(wire.numbered(Type.PRODUCER, topic=name, producer_id=0))
    await wire.write(wire.numbered(Type.LOOKUP, topic=name))
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=name, subscription="s" * MB, subType=Shared, consumer_id=0))
    await wire.rest()
    with trio.fail_after(5):
        await other.alive()
