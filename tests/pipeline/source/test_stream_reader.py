"""Micro-batches, planned and read without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType

from pulsarium.client import AvroSchema, JsonSchema
from pulsarium.client.admin.admin import Admin
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.source import offsets, subscription, topics
from pulsarium.pipeline.source.cutting import Cutting
from pulsarium.pipeline.source.losses import DataLoss
from pulsarium.pipeline.source.offsets import Offset, TopicOffset, decode
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.readers import PulsarStreamReader
from pulsarium.pipeline.source.reading import ReadError
from pulsarium.pipeline.source.subscription import SubscriptionInUse
from pulsarium.pipeline.source.topics import NoSuchTopic
from pulsarium.rest.policies import SCHEMA_STRATEGY
from tests.foreign.broker_process import Address, BrokerProcess
from tests.pipeline.conftest import KEPT

from .topics import VALUES, admin, flat, micro_batch, numbers, options, publish, read, stream_reader, trim, unload

Open = Callable[..., PulsarStreamReader]
WAYS = pytest.mark.parametrize("more", [{}, {"admin_url": None}], ids=["admin", "no admin"])


@pytest.fixture
def stream(broker: Address, topic: str) -> Iterator[Open]:
    """Yield a function that opens a stream of the topic, by default from its earliest message.

    The function stops the earlier streams, as a restart does, except with `beside=True`.
    """
    made: list[PulsarStreamReader] = []

    def opened(*, beside: bool = False, wanted: StructType = VALUES, **more: object) -> PulsarStreamReader:
        for one in made if not beside else ():
            one.stop()
        given = {"startingOffsets": "earliest", "topicDiscoveryIntervalMs": 0} | more
        made.append(stream_reader(options(broker, str(given.pop("topic", topic)), **given), wanted))
        return made[-1]

    yield opened
    for one in made:
        one.stop()


def rows(reader: PulsarStreamReader, start: Offset) -> tuple[Offset, list[tuple[Any, ...]]]:
    """Plan and read a micro-batch as Spark does, and return its end and its rows."""
    end = reader.latestOffset(start, ReadAllAvailable())
    batches = [batch for split in reader.partitions(start, end) for batch in reader.read(split)]
    return end, [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def subscription_of(broker: Address, topic: str) -> dict[str, str]:
    """Return the mark-delete position of each subscription."""
    stats = admin(broker, lambda found: found.topics.get_internal_stats(topic))
    return {name: cursor["markDeletePosition"] for name, cursor in stats["cursors"].items()}


def test_batch_after_batch(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    reader = stream()
    start = reader.initialOffset()
    first, found = micro_batch(reader, start)
    assert flat(found) == numbers(50)
    assert micro_batch(reader, first) == (first, [])
    publish(broker, topic, numbers(30, 50))
    second, found = micro_batch(reader, first)
    assert flat(found) == numbers(30, 50)
    assert json.loads(json.dumps(second)) == second


def test_from_the_latest(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    reader = stream(startingOffsets="latest")
    start = reader.initialOffset()
    assert micro_batch(reader, start) == (start, [])
    publish(broker, topic, numbers(30, 50))
    assert flat(micro_batch(reader, start)[1]) == numbers(30, 50)


@pytest.mark.parametrize("admin_url", [True, False])
def test_without_admin_url_too(broker: Address, topic: str, stream: Open, admin_url: bool) -> None:
    more = {} if admin_url else {"admin_url": None}
    publish(broker, topic, numbers(50))
    one = stream(startingOffsets="index:20" if admin_url else "earliest", **more)
    start = one.initialOffset()
    assert flat(micro_batch(one, start)[1]) == (numbers(30, 20) if admin_url else numbers(50))


def test_a_replay_has_the_same_partitions(broker: Address, topic: str, stream: Open) -> None:
    """The splits of a batch follow from its offsets, even when the topic changed after the first run died."""
    publish(broker, topic, numbers(200))
    one = stream(minPartitions=4)
    start = one.initialOffset()
    end = one.latestOffset(start, ReadAllAvailable())
    planned = one.partitions(start, end)
    rows = read(one, planned)
    publish(broker, topic, numbers(500, 200))
    unload(broker, topic)
    another = stream(minPartitions=9)
    replayed = another.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
    assert replayed == planned
    assert len(planned) == 4
    assert read(another, replayed) == rows
    assert flat(rows) == numbers(200)
    assert flat(micro_batch(another, end)[1]) == numbers(500, 200)


def test_the_workers_part(broker: Address, topic: str, stream: Open) -> None:
    """A pickled reader reads splits, and has no client of the driver."""
    publish(broker, topic, numbers(20))
    reader = stream()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    copy = pickle.loads(pickle.dumps(reader))
    assert read(copy, reader.partitions(start, end)) == [numbers(20)]
    assert copy._pulsar is None


# ---- admission


def test_a_stream_reads_as_many_bytes_as_it_may(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, [b"%3d" % number * 100 for number in range(100)])  # ten entries of 3 kB
    reader = stream(maxBytesPerTrigger=7000)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(7000)
    at, sizes, got = reader.initialOffset(), [], []
    while True:
        end, found = micro_batch(reader, at, limit)
        if end == at:
            break
        sizes.append(len(flat(found)))
        got += flat(found)
        at = end
    assert sizes == [20, 20, 20, 20, 20]
    assert got == [b"%3d" % number * 100 for number in range(100)]


def test_an_entry_at_a_time_where_even_that_is_too_much(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(30))
    reader = stream(maxBytesPerTrigger=1)
    end, found = micro_batch(reader, reader.initialOffset(), reader.getDefaultReadLimit())
    assert flat(found) == numbers(10)
    assert flat(micro_batch(reader, end)[1]) == numbers(20, 10)  # the limit is now ReadAllAvailable


@pytest.mark.parametrize("batch", [1, 10])
def test_a_stream_reads_as_many_messages_as_it_may(broker: Address, topic: str, stream: Open, batch: int) -> None:
    publish(broker, topic, numbers(100), batching_max_messages=batch)
    reader = stream(maxMessagesPerTrigger=20)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    at, sizes = reader.initialOffset(), []
    while (batch_read := micro_batch(reader, at, limit))[0] != at:
        at = batch_read[0]
        sizes.append(len(flat(batch_read[1])))
    assert sizes == [20] * 5


def test_both_limits_hold(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, [b"%3d" % number * 100 for number in range(100)])  # ten entries of 3 kB
    reader = stream(maxMessagesPerTrigger=10, maxBytesPerTrigger=7000)
    _, found = micro_batch(reader, reader.initialOffset(), reader.getDefaultReadLimit())
    assert len(flat(found)) == 10


@pytest.mark.parametrize("admin_url", [True, False])
def test_progress_shows_the_end_and_the_lag(broker: Address, topic: str, stream: Open, admin_url: bool) -> None:
    publish(broker, topic, numbers(50))
    reader = stream(**({"maxMessagesPerTrigger": 20} if admin_url else {"admin_url": None}))
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    reported = reader.reportLatestOffset()
    assert reported is not None
    if admin_url:
        assert (reported[topic]["lagMessages"], float(reported[topic]["lagSeconds"]) >= 0) == ("30", True)
        assert int(reported[topic]["lagBytes"]) > 0
        end = reader.latestOffset(end, ReadAllAvailable())
        reported = reader.reportLatestOffset()
        assert reported is not None
        assert reported[topic]["lagMessages"] == "0"
    assert reported[topic]["next"] == end[topic]["next"]


def test_available_now_stops_at_what_was_there(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(30))
    reader = stream()
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    publish(broker, topic, numbers(30, 30))
    end, found = micro_batch(reader, start)
    assert flat(found) == numbers(30)
    assert micro_batch(reader, end) == (end, [])
    assert flat(micro_batch(stream(), end)[1]) == numbers(30, 30)


def test_available_now_of_a_pattern_leaves_later_topics_to_the_next_run(
    broker: Address, topic: str, stream: Open
) -> None:
    publish(broker, f"{topic}-a", numbers(3))
    pattern = {"topic": "", "topicsPattern": f"{topic}-.*"}
    reader = stream(**pattern)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    publish(broker, f"{topic}-b", numbers(3, 3))
    end, found = micro_batch(reader, start)
    assert flat(found) == numbers(3)
    assert flat(micro_batch(reader, end)[1]) == []
    assert flat(micro_batch(stream(**pattern), end)[1]) == numbers(3, 3)


@pytest.mark.parametrize(("start", "count"), [("latest", 0), ("index:20", 10)])
def test_available_now_makes_no_subscription(broker: Address, topic: str, stream: Open, start: str, count: int) -> None:
    """A new subscription begins where the options say, although Spark asks for the target offsets first."""
    publish(broker, topic, numbers(30))
    reader = stream(predefinedSubscription="new", startingOffsets=start)
    reader.prepareForTriggerAvailableNow()
    assert len(flat(micro_batch(reader, reader.initialOffset())[1])) == count


# ---- schemas that change

OLD = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
MORE = {"name": "more", "type": ["null", "string"], "default": None}


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_a_stream_keeps_its_columns_while_the_schema_changes(
    broker: Address, topic: str, stream: Open, schema: type[AvroSchema[Any]]
) -> None:
    def publish_as(fields: list[Any], **value: Any) -> None:
        publish(broker, topic, [value], schema=schema({"type": "record", "name": "R", "fields": fields}))

    publish_as(OLD, id=1, name="a")
    admin(broker, lambda found: found.topic_policies[SCHEMA_STRATEGY].set(topic, "ALWAYS_COMPATIBLE"))
    reader = stream(wanted=StructType().add("id", "long").add("name", "string"))
    at, first = rows(reader, reader.initialOffset())
    publish_as([*OLD, MORE], id=2, name="b", more="x")
    publish_as([OLD[0], MORE], id=3, more="y")
    _, second = rows(reader, at)
    assert first + second == [(1, "a"), (2, "b"), (3, None)]
    anew = stream(wanted=StructType().add("id", "long").add("more", "string"))
    _, again = rows(anew, anew.initialOffset())
    assert again == [(1, None), (2, "x"), (3, "y")]


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_a_schema_that_changes_before_the_task_changes_no_row_of_the_plan(
    broker: Address, topic: str, stream: Open, schema: type[AvroSchema[Any]]
) -> None:
    def publish_as(fields: list[Any], *values: dict[str, Any]) -> None:
        publish(broker, topic, values, schema=schema({"type": "record", "name": "R", "fields": fields}))

    publish_as(OLD, {"id": 1, "name": "a"})
    admin(broker, lambda found: found.topic_policies[SCHEMA_STRATEGY].set(topic, "ALWAYS_COMPATIBLE"))
    publish_as([*OLD, MORE], {"id": 2, "name": "b", "more": "x"})
    reader = stream(wanted=StructType().add("id", "long").add("name", "string").add("more", "string"))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    planned = reader.partitions(start, end)
    publish_as([{"name": "id", "type": "string"}], {"id": "three"})
    found = [row for split in planned for batch in reader.read(split) for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in found] == [(1, "a", None), (2, "b", "x")]


def test_a_task_does_not_guess_the_writer_of_records_whose_schema_is_gone(
    broker: Address, topic: str, stream: Open
) -> None:
    """JSON tells its fields itself. Avro's bytes are nothing without the schema that they were written with."""
    for schema, name in ((JsonSchema, f"{topic}-json"), (AvroSchema, f"{topic}-avro")):
        publish(broker, name, [{"id": 1}], schema=schema({"type": "record", "name": "R", "fields": OLD[:1]}))
        reader = stream(topic=name, wanted=StructType().add("id", "long"))
        start = reader.initialOffset()
        [split] = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
        admin(broker, partial(delete_schema, name))
        if schema is JsonSchema:
            assert [row for batch in reader.read(split) for row in batch.to_pylist()] == [{"id": 1}]
        else:
            with pytest.raises(ReadError, match=f"{name} from .* IncompatibleSchema"):
                read(reader, [split])


async def delete_schema(topic: str, found: Admin) -> None:
    await found.schemas.delete_schema(topic)


# ---- topics that come and go


def test_new_partitions_begin_at_their_first_message(broker: Address, topic: str, stream: Open) -> None:
    made_of(broker, topic, 1)
    reader = stream(startingOffsets="latest")
    at = reader.initialOffset()
    admin(broker, lambda found: found.topics.update_partitioned_topic(topic, 3))
    publish(broker, topic, numbers(30), batching_max_messages=1)
    at, found = micro_batch(reader, at)
    assert sorted(flat(found)) == sorted(numbers(30))
    assert sorted(decode(at)) == [f"{topic}-partition-{index}" for index in range(3)]


@WAYS
def test_a_topic_that_was_made_anew_with_fewer_partitions_is_a_loss(
    broker: Address, topic: str, stream: Open, more: dict[str, None]
) -> None:
    made_of(broker, topic, 3)
    publish(broker, topic, numbers(30), batching_max_messages=1)
    end, _ = micro_batch(reader := stream(**more), reader.initialOffset())
    admin(broker, lambda found: found.topics.delete_partitioned_topic(topic, force=True))
    made_of(broker, topic, 2)
    publish(broker, topic, numbers(30, 30), batching_max_messages=1)
    for _ in range(2):  # a restart does not forget the loss
        with pytest.raises(DataLoss, match=f"all of {topic}-partition-2 from .*the topic does not exist any more"):
            stream(**more).latestOffset(end, ReadAllAvailable())
    behind, found = micro_batch(stream(failOnDataLoss="false", **more), end)
    assert sorted(flat(found)) == numbers(30, 30)
    assert list(decode(behind)) == [f"{topic}-partition-{index}" for index in range(2)]
    publish(broker, topic, numbers(10, 60), batching_max_messages=1)
    assert sorted(flat(micro_batch(stream(**more), behind)[1])) == numbers(10, 60)


def made_of(broker: Address, topic: str, partitions: int) -> None:
    admin(broker, lambda found: found.topics.create_partitioned_topic(topic, partitions))


def test_new_topics_of_a_pattern(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, f"{topic}-a", numbers(3))
    reader = stream(topic="", topicsPattern=f"{topic}-.*")
    at, found = micro_batch(reader, reader.initialOffset())
    assert flat(found) == numbers(3)
    publish(broker, f"{topic}-b", numbers(3, 3))
    at, found = micro_batch(reader, at)
    assert flat(found) == numbers(3, 3)


def test_a_deleted_topic(broker: Address, topic: str, stream: Open) -> None:
    for name in ("a", "b"):
        publish(broker, f"{topic}-{name}", numbers(3))
    pattern = {"topic": "", "topicsPattern": f"{topic}-.*"}
    at, _ = micro_batch(first := stream(**pattern), first.initialOffset())
    admin(broker, lambda found: found.topics.delete(f"{topic}-a", force=True))
    with pytest.raises(DataLoss, match=f"all of {topic}-a from .*the topic does not exist any more"):
        stream(**pattern).latestOffset(at, ReadAllAvailable())
    forgiving = stream(**pattern, failOnDataLoss="false")
    publish(broker, f"{topic}-b", numbers(3, 3))
    end, found = micro_batch(forgiving, at)
    assert flat(found) == numbers(3, 3)
    assert list(decode(end)) == [f"{topic}-b"]


def test_a_deleted_topic_fails_its_stream_and_does_not_come_back(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(3))
    reader = stream(topicDiscoveryIntervalMs=3_600_000)
    end, _ = micro_batch(reader, reader.initialOffset())
    admin(broker, lambda found: found.topics.delete(topic, force=True))
    with pytest.raises(NoSuchTopic, match=f"{topic} does not exist"):
        reader.latestOffset(end, ReadAllAvailable())
    assert topic not in admin(broker, lambda found: found.topics.get_list("public/default"))


@pytest.mark.parametrize("by", ["topic", "topicsPattern"])
def test_a_stream_waits_for_a_topic_that_does_not_exist_yet(
    broker: Address, topic: str, stream: Open, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            await anyio.to_thread.run_sync(publish, broker, topic, numbers(3))

    monkeypatch.setattr(topics, "_sleep", wait)
    reader = stream(waitingForNonExistedTopic=True, topicDiscoveryIntervalMs=7000, **{"topic": "", by: topic})
    assert waits == [7.0, 7.0]
    _, parts = micro_batch(reader, reader.initialOffset())
    assert flat(parts) == numbers(3)


# ---- the subscription


def test_the_broker_holds_what_was_not_processed(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    reader = stream()
    end, _ = micro_batch(reader, reader.initialOffset())
    [(name, mark)] = subscription_of(broker, topic).items()
    assert mark.endswith(":-1")  # Spark has not finished the batch
    publish(broker, topic, numbers(50, 50))
    micro_batch(reader, end)
    ledger, entry = map(int, end[topic]["next"].split(":"))
    assert subscription_of(broker, topic)[name] == f"{ledger}:{entry - 2}"  # one entry is held back


def test_a_prefix_begins_the_name_of_the_subscription(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    reader = stream(subscriptionPrefix="mine")
    micro_batch(reader, reader.initialOffset())
    [name] = subscription_of(broker, topic)
    assert name.startswith("mine-")


def test_a_subscription_that_is_there_says_where_to_begin(broker: Address, topic: str, stream: Open) -> None:
    ids = publish(broker, topic, numbers(50))
    admin(broker, lambda found: found.topics.create_subscription(topic, "audit", ids[20]))
    for more in ({}, {"admin_url": None}, {"startingOffsets": "latest"}, {"startingOffsets": "index:40"}):
        reader = stream(predefinedSubscription="audit", **more)
        assert flat(micro_batch(reader, reader.initialOffset())[1]) == numbers(30, 20)


def test_a_new_predefined_subscription(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    for number, (start, count) in enumerate({"earliest": 50, "latest": 0, "index:40": 10}.items()):
        reader = stream(predefinedSubscription=f"audit-{number}", startingOffsets=start)
        assert len(flat(micro_batch(reader, reader.initialOffset())[1])) == count
    assert set(subscription_of(broker, topic)) == {"audit-0", "audit-1", "audit-2"}
    with pytest.raises(BadOption, match=r"needs \.option"):
        stream(predefinedSubscription="other", startingOffsets="0:0", admin_url=None).initialOffset()


def test_queries_on_the_same_topics_have_subscriptions_of_their_own(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    one, other = stream(), stream(beside=True)
    end, _ = micro_batch(one, one.initialOffset())
    one.latestOffset(end, ReadAllAvailable())
    assert flat(micro_batch(other, other.initialOffset())[1]) == numbers(50)
    first, second = sorted(subscription_of(broker, topic).values(), reverse=True)
    assert not first.endswith(":-1")
    assert second.endswith(":-1")


def test_a_query_finds_its_subscription_in_its_checkpoint(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(50))
    end, _ = micro_batch(first := stream(), first.initialOffset())
    publish(broker, topic, numbers(10, 50))
    assert flat(micro_batch(stream(), json.loads(json.dumps(end)))[1]) == numbers(10, 50)
    assert len(subscription_of(broker, topic)) == 1


def test_a_query_without_new_messages_has_its_subscription_in_its_checkpoint(
    broker: Address, topic: str, stream: Open
) -> None:
    publish(broker, topic, numbers(10))
    reader = stream(startingOffsets="latest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert [offsets.subscription_of(end)] == list(subscription_of(broker, topic))


def test_the_start_of_a_query_makes_no_subscription(broker: Address, topic: str, stream: Open) -> None:
    """Spark asks for the start again when the first batch is repeated, and the checkpoint has the name by then."""
    publish(broker, topic, numbers(10))
    reader = stream()
    assert reader.initialOffset() == reader.initialOffset()
    assert subscription_of(broker, topic) == {}


def test_a_first_batch_that_cannot_be_planned_leaves_no_subscription(
    broker: Address, topic: str, stream: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(broker, topic, numbers(10))
    reader = stream()
    start = reader.initialOffset()

    async def fails(*_: object) -> None:
        raise OSError("the plan fails")

    monkeypatch.setattr(Cutting, "cuts", fails)
    with pytest.raises(OSError, match="the plan fails"):
        reader.latestOffset(start, ReadAllAvailable())
    assert subscription_of(broker, topic) == {}


def test_a_repeated_first_batch_has_the_same_range(broker: Address, topic: str, stream: Open) -> None:
    """Spark asks for the start of a first batch again, and `latest` is then another place."""
    publish(broker, topic, numbers(10))
    reader = stream(startingOffsets="latest")
    start = reader.initialOffset()
    publish(broker, topic, numbers(20, 10))
    end = reader.latestOffset(start, ReadAllAvailable())
    another = stream(startingOffsets="latest")
    publish(broker, topic, numbers(30, 30))
    assert flat(read(another, another.partitions(another.initialOffset(), end))) == numbers(20, 10)
    assert flat(micro_batch(another, end)[1]) == numbers(30, 30)


def test_two_queries_with_one_checkpoint_are_an_error(
    broker: Address, topic: str, stream: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "TAKEOVER", 0.0)
    publish(broker, topic, numbers(10))
    end, _ = micro_batch(first := stream(), first.initialOffset())
    with pytest.raises(SubscriptionInUse, match="A checkpoint is for one query at a time"):
        stream(beside=True).latestOffset(end, ReadAllAvailable())
    assert first.latestOffset(end, ReadAllAvailable()) == end


def test_a_checkpoint_that_names_no_subscription_is_refused(broker: Address, topic: str, stream: Open) -> None:
    publish(broker, topic, numbers(20))
    with pytest.raises(ValueError, match=r"the checkpoint is of another source: .*; use another checkpointLocation"):
        stream().latestOffset({topic: {"next": "1:1", "cuts": ""}}, ReadAllAvailable())


def test_a_checkpoint_keeps_its_subscription_when_the_options_name_another(
    broker: Address, topic: str, stream: Open
) -> None:
    publish(broker, topic, numbers(10))
    end, _ = micro_batch(first := stream(), first.initialOffset())
    with pytest.raises(BadOption, match="omit predefinedSubscription, or use another checkpointLocation"):
        stream(predefinedSubscription="audit").latestOffset(end, ReadAllAvailable())


# ---- lost data


def done(broker: Address, topic: str, stream: Open, **more: object) -> Offset:
    """Publish 50 messages, process all of them in a run that stops, and return the end offset."""
    publish(broker, topic, numbers(50))
    reader = stream(**more)
    end, _ = micro_batch(reader, reader.initialOffset())
    reader.latestOffset(end, ReadAllAvailable())
    return end


@WAYS
def test_an_idle_stream_loses_nothing(broker: Address, topic: str, stream: Open, more: dict[str, None]) -> None:
    """The broker deletes ledgers whose messages are all processed. The stream does not report these as lost."""
    end = done(broker, topic, stream, **more)
    for first in (50, 60):
        unload(broker, topic)
        admin(broker, lambda found: found.topics.trim_topic(topic))
        publish(broker, topic, numbers(10, first))
    reader = stream(**more)
    end, found = micro_batch(reader, end)
    assert flat(found) == numbers(20, 50)
    assert micro_batch(reader, end) == (end, [])


@WAYS
def test_a_stream_fails_when_unread_messages_are_gone(
    broker: Address, topic: str, stream: Open, more: dict[str, None]
) -> None:
    end = done(broker, topic, stream, **more)
    publish(broker, topic, numbers(10, 50))
    skip(broker, topic)
    trim(broker, topic)
    publish(broker, topic, numbers(10, 60))
    for _ in range(2):  # a restart does not forget the loss
        with pytest.raises(DataLoss, match=rf"{topic} from {end[topic]['next']} on; .*failOnDataLoss"):
            stream(**more).latestOffset(end, ReadAllAvailable())
    assert flat(micro_batch(stream(failOnDataLoss="false", **more), end)[1]) == numbers(10, 60)


@WAYS
def test_skipped_messages_that_still_exist_are_read(
    broker: Address, topic: str, stream: Open, more: dict[str, None]
) -> None:
    """The query moves its subscription back, so that the broker keeps the messages again."""
    end = done(broker, topic, stream, **more)
    publish(broker, topic, numbers(10, 50))
    mark = subscription_of(broker, topic)
    skip(broker, topic)
    reader = stream(**more)
    assert flat(micro_batch(reader, end)[1]) == numbers(10, 50)
    assert subscription_of(broker, topic) == mark


@WAYS
def test_a_loss_is_warned_of_once(
    broker: Address, topic: str, stream: Open, more: dict[str, None], caplog: pytest.LogCaptureFixture
) -> None:
    end = done(broker, topic, stream, **more)
    publish(broker, topic, numbers(10, 50))
    skip(broker, topic)
    trim(broker, topic)
    reader = stream(failOnDataLoss="false", **more)
    for _ in range(2):
        assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert caplog.text.count("data was lost") == 1


@WAYS
def test_a_topic_that_was_made_anew_is_a_loss(broker: Address, topic: str, stream: Open, more: dict[str, None]) -> None:
    end = done(broker, topic, stream, **more)
    admin(broker, lambda found: found.topics.delete(topic, force=True))
    publish(broker, topic, numbers(10))
    with pytest.raises(DataLoss, match="the first position that still exists"):
        stream(**more).latestOffset(end, ReadAllAvailable())
    assert flat(micro_batch(stream(failOnDataLoss="false", **more), end)[1]) == numbers(10)


@WAYS
def test_a_topic_that_ends_before_the_checkpoint_is_a_loss(
    broker: Address, topic: str, stream: Open, more: dict[str, None]
) -> None:
    """A broker without its former data numbers its ledgers from the beginning."""
    end = done(broker, topic, stream, **more)
    later = offsets.encode({topic: TopicOffset(ReadPosition(999999, 5))}, "new")
    with pytest.raises(DataLoss, match=f"{topic} from 999999:5 on; the topic now ends at {end[topic]['next']}"):
        stream(**more).latestOffset(later, ReadAllAvailable())
    assert flat(micro_batch(stream(failOnDataLoss="false", **more), later)[1]) == numbers(50)


@contextmanager
def forgotten(
    folder: Path, topic: str, stream: Open, again: Sequence[bytes]
) -> Iterator[tuple[PulsarStreamReader, dict[str, str], Any, Any]]:
    """Read 50 messages, and start the broker again without them and with others.

    Yield the reader, its options, and the offsets before and after the messages.
    """
    first = BrokerProcess(folder, KEPT)
    where = {"service.url": first.address.service_url, "admin.url": first.address.admin_url}
    publish(first.address, topic, numbers(50))
    start = (reader := stream(**where)).initialOffset()
    end, _ = micro_batch(reader, start)
    assert first.stop() == 0
    second = BrokerProcess(folder, KEPT, first.address.port, first.address.http_port)
    publish(second.address, topic, again)
    yield reader, where, start, end
    assert second.stop() == 0


@pytest.mark.parametrize("restarts", [False, True], ids=["the query goes on", "the query restarts too"])
def test_a_broker_that_forgot_its_messages_is_noticed_when_it_has_as_many_again(
    tmp_path: Path, topic: str, stream: Open, restarts: bool
) -> None:
    """A broker in memory numbers its ledgers from the beginning, so that the positions exist again."""
    with forgotten(tmp_path, topic, stream, numbers(90, 100)) as (former, where, start, end):
        reader = stream(**where) if restarts else former
        ledger = decode(end)[topic].next.ledger
        with pytest.raises(
            DataLoss, match=f"{topic} from {ledger}:5 on; its ledger {ledger} was opened at .* not the same"
        ):
            reader.latestOffset(end, ReadAllAvailable())
        with pytest.raises(DataLoss, match="not the same topic"):
            stream(**where).partitions(start, end)
        assert flat(micro_batch(stream(**where, failOnDataLoss="false"), end)[1]) == numbers(90, 100)
        stream(**where).stop()


def test_a_restart_notices_a_broker_that_forgot_its_messages_and_has_exactly_as_many(
    tmp_path: Path, topic: str, stream: Open
) -> None:
    with forgotten(tmp_path, topic, stream, numbers(50, 100)) as (_, where, start, end):
        with pytest.raises(DataLoss, match="not the same topic"):
            stream(**where).latestOffset(end, ReadMaxBytes(1_000_000))
        forgiving = stream(**where, failOnDataLoss="false")
        forgiving.partitions(start, end)  # Spark plans a batch once more when it did not end
        assert flat(micro_batch(forgiving, end, ReadMaxBytes(1_000_000))[1]) == numbers(50, 100)


@WAYS
def test_a_replay_of_what_is_gone(broker: Address, topic: str, stream: Open, more: dict[str, None]) -> None:
    start = done(broker, topic, stream, **more)
    publish(broker, topic, numbers(10, 50))
    end = stream(**more).latestOffset(start, ReadAllAvailable())
    skip(broker, topic)
    trim(broker, topic)
    restarted = stream(**more)
    assert restarted.partitions(end, end) == []  # Spark's first call, with the newest offset of its checkpoint
    with pytest.raises(DataLoss):
        restarted.partitions(start, end)
    assert len(stream(failOnDataLoss="false", **more).partitions(start, end)) == 1


def skip(broker: Address, topic: str) -> None:
    """Skip all messages of the topic's only subscription."""
    [name] = subscription_of(broker, topic)
    admin(broker, lambda found: found.topics.skip_all_messages(topic, name))
