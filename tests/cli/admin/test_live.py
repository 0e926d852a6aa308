"""Commands that look at messages, on a broker that has some."""

from __future__ import annotations

import base64
import json

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import MessageId
from tests.broker.wire import Earliest, Shared, Wire, batch_of, plain

from .live import Live, live

TOPIC = "persistent://public/default/orders"
PARTITIONED = "persistent://public/default/partitioned"
COUNTING = Config(
    brokerEntryMetadataInterceptors=tuple(
        f"org.apache.pulsar.common.intercept.Append{name}MetadataInterceptor" for name in ("BrokerTimestamp", "Index")
    )
)


async def published(admin: Live, *entries: bytes, num_messages: int = 1) -> list[Position]:
    client = await admin.bed.connect()
    await client.producer(TOPIC)
    return await client.publish(*entries, num_messages=num_messages)


async def consumer(admin: Live) -> Wire:
    client = await admin.bed.connect()
    await client.subscribe(TOPIC, "sub", Shared, initialPosition=Earliest)
    return client


def text(position: Position) -> str:
    return f"{position.ledger_id}:{position.entry_id}"


async def test_messages_are_shown_as_pulsar_admin_shows_them() -> None:
    async with live(COUNTING) as admin:
        properties = [{"key": "a", "value": "b"}]
        first, second = await published(admin, plain(b"hello", properties=properties, event_time=5), plain(b"w"))
        await admin.said("topics", "create-subscription", TOPIC, "-s", "sub", "-m", "earliest")
        shown = await admin.said("topics", "peek-messages", TOPIC, "-s", "sub", "-n", "5")
        lines = shown.splitlines()
        assert lines[0] == f"Message ID: {text(first)}"
        assert lines[1].startswith("Publish time: ")
        assert lines[2] == "Event time: 5"
        assert lines[3].startswith("Broker entry metadata timestamp: 1")
        assert lines[4:7] == ["Broker entry metadata index: 0", "Properties:", "a    b"]
        assert "|00000000| 68 65 6c 6c 6f                                  |hello           |" in lines
        assert ["-" * 73, "", f"Message ID: {text(second)}"] == lines[12:15]
        examined = await admin.said("topics", "examine-messages", TOPIC, "-i", "earliest", "-m", "1")
        assert examined == "\n".join(lines[:12]) + "\n"
        by_id = ("topics", "get-message-by-id", TOPIC, "-l", str(second.ledger_id), "-e", str(second.entry_id))
        assert "Redelivery count: 0\nBroker entry metadata timestamp" in await admin.said(*by_id)
        (found,) = json.loads(await admin.said(*by_id, "--output", "json"))
        assert (found["messageId"], found["payload"], found["index"]) == (text(second), "w", 1)


async def test_a_batch_is_shown_message_by_message() -> None:
    async with live() as admin:
        (position,) = await published(admin, batch_of(b"x", b"\xff"), num_messages=2)
        await admin.said("topics", "create-subscription", TOPIC, "-s", "sub", "-m", "earliest")
        shown = await admin.said("topics", "peek-messages", TOPIC, "-s", "sub")
        assert f"Batch Message ID: {text(position)}:0\n" in shown
        assert f"Batch Message ID: {text(position)}:1\n" in shown
        found = json.loads(await admin.said("--output", "json", "topics", "peek-messages", TOPIC, "-s", "sub"))
        assert [message.get("payload") for message in found] == ["x", None]
        assert found[1]["payloadBase64"] == base64.b64encode(b"\xff").decode()


async def test_ids_of_messages() -> None:
    async with live(COUNTING) as admin:
        first, second = await published(admin, plain(b"a"), plain(b"b"))
        for command in (("last-message-id",), ("get-message-id-by-index", "--index", "1")):
            found = json.loads(await admin.said("topics", *command, TOPIC))
            assert (found["ledgerId"], found["entryId"]) == (second.ledger_id, second.entry_id), command
        found = json.loads(await admin.said("topics", "get-message-id", TOPIC, "-d", "2021-06-28T16:53:08Z"))
        assert (found["ledgerId"], found["entryId"]) == (first.ledger_id, first.entry_id)


async def test_an_index_on_a_broker_that_does_not_count_says_how_it_would() -> None:
    async with live() as admin:
        await published(admin, plain(b"a"))
        said = await admin.refused("topics", "get-message-id-by-index", "--index", "0", TOPIC)
        assert "pulsarium serve --set brokerEntryMetadataInterceptors=" in said


@pytest.mark.req("S423-77", "S423-78", "S423-81")
async def test_skipped_messages_are_not_delivered() -> None:
    async with live() as admin:
        positions = await published(admin, *(plain(b"%d" % number) for number in range(5)))
        client = await consumer(admin)
        serialized = base64.b64encode(MessageId(positions[3].ledger_id, positions[3].entry_id).to_bytes()).decode()
        triplets = ("--messageId-triplet", text(positions[0]), "--messageId-triplet", text(positions[1]))
        skip = ("topics", "skip-messages", TOPIC, "-s", "sub")
        done = await admin.run(*skip, *triplets, "--messageId-base64", serialized)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr == "In the topic's ledgers: 3 of 3 message ids\n"
        await client.flow()
        assert await client.payloads(2) == [b"2", b"4"]
        await client.quiet()


async def test_ids_of_another_topic_are_warned_about() -> None:
    async with live() as admin:
        (position,) = await published(admin, plain(b"a"))
        await admin.said("topics", "create-partitioned-topic", PARTITIONED, "-p", "2")
        await admin.said("topics", "create-subscription", PARTITIONED, "-s", "sub")
        skip = ("topics", "skip-messages", PARTITIONED, "-s", "sub")
        done = await admin.run(*skip, "--messageId-triplet", text(position))
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.startswith("Warning: nothing is skipped. In the topic's ledgers: 0 of 1 message ids")


@pytest.mark.req("S423-80")
async def test_one_message_of_a_batch_is_skipped() -> None:
    async with live() as admin:
        (position,) = await published(admin, batch_of(b"a", b"b", b"c"), num_messages=3)
        client = await consumer(admin)
        skip = ("topics", "skip-messages", TOPIC, "-s", "sub")
        done = await admin.run(*skip, "--messageId-triplet", f"{text(position)}:1")
        assert done.stderr == "In the topic's ledgers: 1 of 1 message ids\n"
        await client.flow()
        delivered = await client.message()
        assert delivered.command.ack_set == [0b101]


async def test_tables_for_people() -> None:
    async with live() as admin:
        await published(admin, plain(b"a"))
        await consumer(admin)
        shown = await admin.said("--output", "table", "topics", "stats", TOPIC)
        assert "msgInCounter" in shown
        assert "\nsubscriptions\n" in shown
        assert "{" not in shown


@pytest.mark.parametrize("name", ["a/b", "with blank", "50%", "ä?&#"])
async def test_names_of_any_characters(name: str) -> None:
    async with live() as admin:
        topic = f"persistent://public/default/{name}"
        await admin.said("topics", "create", topic) if "/" not in name else None
        topic = topic if "/" not in name else TOPIC
        await admin.said("topics", "create-subscription", topic, "-s", name)
        assert await admin.said("topics", "subscriptions", topic) == f"{name}\n"
        await admin.said("topics", "unsubscribe", topic, "-s", name)
        assert await admin.said("topics", "subscriptions", topic) == ""
        assert topic in (await admin.said("topics", "list", "public/default")).splitlines()
