"""A topic as a table, against our broker in this process."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client import Client, Int32Schema, StringSchema, TableView
from pulsarium.client.errors import CryptoError, InvalidMessage
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import compact
from tests.broker.wire import TOPIC, batch_of, plain
from tests.client.entry.encrypted import Keys
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import playing
from tests.client.in_process import in_process
from tests.client.peer import Type


async def put(client: Client, topic: str = "t", /, **values: str | None) -> None:
    """Publish a value for each key. None publishes a message without a value."""
    async with client.create_producer(topic, schema=StringSchema()) as producer:
        for key, value in values.items():
            await producer.send(value, partition_key=key)


def table(client: Client, topic: str = "t", **options: Any) -> TableView[str]:
    return client.create_table_view(topic, schema=StringSchema(), **options)


async def test_the_last_value_of_each_key(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        await put(client, a="1", b="2", c="3")
        await put(client, a="4", b=None)
        async with client.create_producer("t") as producer:
            await producer.send(b"no key")
            await producer.send(b"", partition_key="c")  # deletes the key, as in compaction
        async with table(client) as view:
            assert dict(view) == {"a": "4"}
            assert (len(view), view["a"], view.get("b"), view.get("b", "?")) == (1, "4", None, "?")
            assert "a" in view
            assert "b" not in view
            assert list(view.keys()) == ["a"]
            assert list(view.values()) == ["4"]
            with pytest.raises(KeyError):
                view["b"]
            await put(client, b="5", a=None)
            await view.refresh()
            assert dict(view.items()) == {"b": "5"}
            assert view.topic() == TOPIC
            assert repr(view) == f"<TableView of {TOPIC}: 1 keys>"


async def test_of_an_empty_topic(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client, table(client) as view:
        assert dict(view) == {}
        await put(client, a="1")
        await view.refresh()
        assert dict(view) == {"a": "1"}


async def test_a_view_follows_a_compacted_topic(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        await put(client, a="1", b="2", c="3")
        await put(client, a="4", c=None)
        await compact(inside.bed.topic())
        async with table(client) as view:
            assert dict(view) == {"a": "4", "b": "2"}
            await put(client, b=None, d="5")
            await compact(inside.bed.topic())
            await view.refresh()
            assert dict(view) == {"a": "4", "d": "5"}
            await inside.cut()
            await put(client, d="6")
            await view.refresh()
            assert dict(view) == {"a": "4", "d": "6"}


async def test_an_entry_of_which_nothing_is_left_does_not_hold_it_up(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        wire = await inside.wire()
        gone = [(pb.SingleMessageMetadata(partition_key="k", compacted_out=True), b"x")]
        await wire.publish(plain(b"1", partition_key="a"), plain(batch.pack(gone), num_messages_in_batch=1))
        with anyio.fail_after(5):
            async with client.create_table_view("t") as view:
                assert dict(view) == {"a": b"1"}
                await wire.publish(plain(batch.pack(gone), num_messages_in_batch=1))
                await view.refresh()


@on_both
@pytest.mark.parametrize(
    "last",
    [
        plain(b"x", uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=2),
        plain(b"x", num_messages_in_batch=3),
        plain(b"x", uuid="u", chunk_id=1, num_chunks_from_msg=2, total_chunk_msg_size=2, encryption_keys=[
            pb.EncryptionKeys(key="k", value=b"v")
        ]),
    ],
    ids=["an incomplete message", "a broken batch", "an encrypted chunk"],
)  # fmt: skip
async def test_a_last_entry_that_becomes_no_message_does_not_hold_it_up(last: bytes) -> None:
    async with playing(operation_timeout=5.0) as (played, client), anyio.create_task_group() as tasks:

        async def deliver() -> None:
            await played.sent(Type.GET_LAST_MESSAGE_ID)
            await anyio.sleep(0.01)
            where = pb.MessageIdData(ledgerId=1, entryId=9)
            await played.connections[0].say(Type.MESSAGE, last, consumer_id=0, message_id=where)

        tasks.start_soon(deliver)
        with anyio.fail_after(1):
            async with client.create_table_view("t") as view:
                assert dict(view) == {}


async def test_a_table_view_leaves_no_backlog(autojump_clock: MockClock) -> None:
    """The broker has no backlog for the view, and the view tracks no partly acknowledged batch."""
    async with in_process() as inside, inside.client() as client:
        wire = await inside.wire()
        async with client.create_table_view("t", subscription_name="v") as view:
            for _ in range(10):
                await wire.publish(batch_of(b"1", b"2"))
            await view.refresh()
            await anyio.sleep(1)
            (subscription,) = inside.bed.topic().subscriptions.values()
            assert subscription.cursor.backlog() == 0
            (part,) = view._reader._consumer._parts.all
            assert len(part._acknowledgements) == 0


async def test_listeners_hear_what_is_and_what_comes(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        await put(client, a="1", b="2")
        seen: list[tuple[str, str, str | None]] = []
        async with table(client) as view:
            view.for_each(lambda key, value: seen.append(("each", key, value)))
            view.listen(lambda key, value: seen.append(("later", key, value)))
            view.for_each_and_listen(lambda key, value: seen.append(("both", key, value)))
            assert seen == [("each", "a", "1"), ("each", "b", "2"), ("both", "a", "1"), ("both", "b", "2")]
            del seen[:]
            await put(client, a="3", b=None)
            await view.refresh()
            assert seen == [("later", "a", "3"), ("both", "a", "3"), ("later", "b", None), ("both", "b", None)]


async def test_an_error_in_a_listener_ends_the_block(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:

        async def follow() -> None:
            async with table(client) as view:
                view.listen(lambda key, value: 1 // 0)
                await put(client, a="1")
                await anyio.sleep_forever()

        with pytest.raises(ZeroDivisionError):
            await follow()
        async with table(client) as view:  # the client still works
            assert dict(view) == {"a": "1"}


async def test_the_blocks_own_error_comes_out_as_it_is(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        error = LookupError("mine")
        with pytest.raises(LookupError) as caught:
            async with table(client):
                raise error
        assert caught.value is error
        with anyio.move_on_after(1) as scope:
            async with table(client):
                await anyio.sleep_forever()
        assert scope.cancelled_caught


async def test_a_message_that_cannot_be_decrypted_ends_the_table_view(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        options: dict[str, Any] = {"encryption_keys": ["rsa"], "crypto_key_reader": Keys()}
        async with client.create_producer("t", **options) as producer:
            await producer.send(b"1", partition_key="a")
        with pytest.raises(CryptoError):
            async with client.create_table_view("t"):
                raise AssertionError
        async with client.create_table_view("t", crypto_key_reader=Keys()) as view:
            assert dict(view) == {"a": b"1"}


async def test_a_broken_value_is_of_no_harm_before_it_is_asked_for(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer("t", schema=Int32Schema()):
            pass  # the broker refuses a schema on a topic with messages without one
        wire = await inside.wire()
        await wire.publish(plain(b"no number", partition_key="a"), plain(b"\0\0\0\7", partition_key="b"))
        async with client.create_table_view("t", schema=Int32Schema()) as view:
            assert (len(view), view["b"]) == (2, 7)
            with pytest.raises(InvalidMessage):
                view["a"]


async def test_partitions_and_those_that_come(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned("p", 2)
        await put(client, "p", **{f"k{number}": str(number) for number in range(10)})
        async with table(client, "p", auto_update_partitions_interval=5) as view:
            assert dict(view) == {f"k{number}": str(number) for number in range(10)}
            inside.partitioned("p", 3)
            await put(client, "p-partition-2", new="x")
            await anyio.sleep(6)
            await trio.testing.wait_all_tasks_blocked()
            assert view["new"] == "x"


async def test_a_view_goes_on_through_lost_connections(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client, table(client) as view:
        for number in range(20):
            await put(client, **{f"k{number % 3}": str(number)})
            await inside.cut()
            if number % 2:
                await view.refresh()
                assert view[f"k{number % 3}"] == str(number)
        assert dict(view) == {"k0": "18", "k1": "19", "k2": "17"}


async def test_a_table_view_of_a_topic_that_keeps_nothing(autojump_clock: MockClock) -> None:
    name = "non-persistent://public/default/n"
    async with in_process() as inside, inside.client() as client, table(client, name) as view:
        await put(client, name, a="1")
        await trio.testing.wait_all_tasks_blocked()
        await view.refresh()
        assert dict(view) == {"a": "1"}


async def test_the_subscription_of_a_view_goes_with_it(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        async with table(client, subscription_name="mine"):
            assert list(inside.bed.topic().subscriptions) == ["mine"]
        await trio.testing.wait_all_tasks_blocked()
        assert list(inside.bed.topic().subscriptions) == []
