"""Entries that wait for a key of an asynchronous key reader, and those behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pulsarium.broker.testing import running
from pulsarium.client import ConsumerCryptoFailureAction, InitialPosition, MessageId, connect
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import ConnectError, CryptoError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain
from tests.client import both
from tests.client.consumer.fed import Fed
from tests.client.entry.encrypted import AwaitedKeys, Keys
from tests.client.hostile.clocks import on_both


def sealed(payload: bytes, *names: str) -> bytes:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    return Encoder(pb.NONE, names, Keys()).single(metadata, payload)


SEALED = sealed(b"sealed", "rsa")
FOR_TWO = sealed(b"for two", "ec", "rsa")


@asynccontextmanager
async def waiting(entry: bytes = SEALED, fails: str = "", **options: Any) -> AsyncIterator[tuple[Fed, AwaitedKeys]]:
    """Feed an entry, and wait until the key reader was asked for its key."""
    keys = AwaitedKeys(fails)
    async with anyio.create_task_group() as tasks:
        fed = Fed(tasks=tasks, crypto_key_reader=keys, **options)
        fed.feed(entry)
        await anyio.wait_all_tasks_blocked()
        assert keys.asked == 1
        yield fed, keys


@on_both
async def test_entries_wait_in_their_order_for_the_key_of_the_first() -> None:
    async with waiting() as (fed, keys):
        fed.feed(plain(b"plain"), 1)
        fed.feed(SEALED, 2)
        fed.feed(sealed(b"another data key", "rsa"), 3)
        fed.feed(plain(b"last"), 4)
        assert fed.data() == []
        keys.come.set()
        await anyio.wait_all_tasks_blocked()
        assert fed.data() == [b"sealed", b"plain", b"sealed", b"another data key", b"last"]
        assert keys.asked == 2


@on_both
async def test_the_end_of_the_topic_is_told_behind_the_entries_that_wait() -> None:
    async with waiting() as (fed, keys):
        fed.receiver.on_end_of_topic()
        early = fed.receiver.end_of_topic
        keys.come.set()
        await anyio.wait_all_tasks_blocked()
        assert (early, fed.receiver.end_of_topic) == (False, True)
        assert fed.data() == [b"sealed"]


@on_both
async def test_a_seek_drops_the_entries_that_wait_and_gives_their_permits_back() -> None:
    async with waiting(receiver_queue_size=2) as (fed, keys):
        fed.feed(plain(b"plain"), 1)
        assert fed.connection.permits == 2
        fed.receiver.moved(None)
        assert fed.connection.permits == 4
        keys.come.set()
        fed.feed(plain(b"after"), 2)
        await anyio.wait_all_tasks_blocked()
        assert fed.data() == [b"after"]


@on_both
async def test_a_reader_begins_again_at_the_entry_that_waits_when_its_connection_is_lost() -> None:
    start = Start(MessageId(1, 0), inclusive=True)
    async with waiting(reading_from=start) as (fed, _):
        fed.receiver.on_lost(ConnectError("lost"))
        assert fed.receiver.start == start


@on_both
async def test_a_key_that_does_not_come_is_raised_and_the_next_entry_asks_again() -> None:
    async with waiting(fails="rsa") as (fed, keys):
        fed.feed(SEALED, 1)
        keys.come.set()
        await anyio.wait_all_tasks_blocked()
        assert keys.asked == 2
        for _ in range(2):
            with pytest.raises(CryptoError, match="rsa: the key reader gives no private key: LookupError"):
                fed.receiver.take()


@on_both
async def test_the_second_key_decrypts_where_the_first_does_not_come() -> None:
    async with waiting(FOR_TWO, fails="ec") as (fed, keys):
        keys.come.set()
        await anyio.wait_all_tasks_blocked()
        assert fed.data() == [b"for two"]


@on_both
async def test_an_entry_is_discarded_after_its_key_did_not_come() -> None:
    async with waiting(fails="rsa", crypto_failure_action=ConsumerCryptoFailureAction.DISCARD) as (fed, keys):
        keys.come.set()
        await anyio.wait_all_tasks_blocked()
        assert fed.connection.acked == [(0, pb.CommandAck.DecryptionError)]


@both.on_both
async def test_messages_pass_with_an_asynchronous_key_reader() -> None:
    keys = AwaitedKeys()
    keys.come.set()
    options: dict[str, Any] = {"crypto_key_reader": keys}
    with running() as broker:
        async with connect(broker.service_url) as client:
            async with client.create_producer("t", encryption_keys=["rsa"], **options) as producer:
                sent = [await producer.send(b"%d" % number) for number in range(3)]
            async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options) as consumer:
                assert [(await consumer.receive()).data() for _ in range(3)] == [b"0", b"1", b"2"]
                assert await consumer.get_last_message_ids() == sent[2:]
            async with client.create_table_view("t", **options) as view:
                assert len(view) == 0


@both.on_both
async def test_a_producer_does_not_open_without_the_key_that_it_awaits() -> None:
    keys = AwaitedKeys(fails="rsa")
    keys.come.set()
    with running() as broker:
        async with connect(broker.service_url) as client:
            with pytest.raises(CryptoError, match="rsa: the key reader gives no public key: LookupError"):
                async with client.create_producer("t", encryption_keys=["rsa"], crypto_key_reader=keys):
                    raise AssertionError
