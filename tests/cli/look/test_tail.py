"""`pulsarium tail`."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

import pytest
import trio

from pulsarium.broker.web.console import messages
from pulsarium.cli.look import tail as module
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Wire, plain
from tests.cli.admin.live import Live, live
from tests.cli.lab.line import LabLine

NOON = 1_800_000_000_000  # milliseconds


@pytest.fixture
async def here() -> AsyncIterator[Live]:
    async with live() as broker:
        yield broker


async def publish(wire: Wire, *texts: str) -> list[str]:
    """Publish texts, one a second from noon on, and return their message ids."""
    entries = [plain(text.encode(), publish_time=NOON + 1000 * at) for at, text in enumerate(texts)]
    return [str(position) for position in await wire.publish(*entries)]


async def values(here: Live, *arguments: str) -> list[str]:
    said = await LabLine(here, "tail").said("t", "-o", "json", "--no-follow", *arguments)
    return [json.loads(line)["value"] for line in said.splitlines()]


async def test_the_last_messages_are_shown_in_their_order(here: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = await here.bed.connect()
    await wire.producer()
    await publish(wire, *"abcd")
    assert await values(here) == list("abcd")
    assert await values(here, "--last", "3") == list("bcd")
    assert await values(here, "--last", "0") == []
    monkeypatch.setattr(module, "PAGE", 1)
    assert await values(here, "--last", "3") == list("bcd")
    assert await values(here, "--from", "earliest") == list("abcd")


async def test_messages_are_shown_from_a_place(here: Live) -> None:
    wire = await here.bed.connect()
    await wire.producer()
    ids = await publish(wire, *"abcd")
    assert await values(here, "--from", ids[2]) == ["c", "d"]
    assert await values(here, "--from", "latest") == []
    assert await values(here, "--from", "2027-01-15T08:00:02+00:00") == ["c", "d"]
    assert await values(here, "--from", "earliest", "--count", "1") == ["a"]


async def test_since_counts_from_the_time_of_this_machine(here: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOON / 1000 + 3)
    wire = await here.bed.connect()
    await wire.producer()
    await publish(wire, *"abcd")
    assert await values(here, "--since", "1500ms") == ["c", "d"]


async def test_messages_are_filtered_by_the_conditions_of_the_console(here: Live) -> None:
    wire = await here.bed.connect()
    await wire.producer()
    await publish(wire, '{"total": 1}', '{"total": 200}')
    assert await values(here, "--filter", "value.total > 100") == ['{"total": 200}']
    assert await values(here, "--containing", "200") == ['{"total": 200}']
    assert await values(here, "--key", "nobody") == []


async def test_a_search_for_the_last_messages_ends_in_time_and_says_so(
    here: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SCANNED", 2)
    wire = await here.bed.connect()
    await wire.producer()
    await publish(wire, *"abcd")
    result = await LabLine(here, "tail").run("t", "--no-follow", "--containing", "a")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "searched the latest messages only; --from earliest searches all\n"
    assert await values(here, "--containing", "a", "--from", "earliest") == ["a"]


async def test_new_messages_of_all_partitions_are_shown_as_they_arrive(
    here: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.bed.broker.topics.create_partitions(TopicName.parse("t"), 2)
    wire = await here.bed.connect()
    for index in range(2):
        await wire.producer(f"persistent://public/default/t-partition-{index}", index)
    await wire.publish(plain(b"old"), producer_id=0)
    waits = trio.Event()
    token = trio.lowlevel.current_trio_token()
    monkeypatch.setattr(time, "sleep", lambda seconds: token.run_sync_soon(waits.set))
    said = ""
    async with trio.open_nursery() as nursery:

        async def follow() -> None:
            nonlocal said
            said = await LabLine(here, "tail").said("t", "--count", "2")

        nursery.start_soon(follow)
        await waits.wait()
        await wire.publish(plain(b"new"), producer_id=1)
    first, second = said.splitlines()
    assert first.endswith("  old")
    assert second.endswith("  new")
    assert (" 0/" in first, " 1/" in second) == (True, True)


async def test_a_line_has_key_value_and_properties_and_no_control_characters(here: Live) -> None:
    wire = await here.bed.connect()
    await wire.producer()
    await wire.publish(plain(b"two\nlines", partition_key="alice", properties=[pb.KeyValue(key="shop", value="eu")]))
    said = await LabLine(here, "tail").said("t", "--no-follow")
    assert said.endswith("  alice  two\\nlines  shop=eu\n")
    assert "\x1b" not in said


async def test_a_topic_that_does_not_exist_is_refused_with_similar_names(here: Live) -> None:
    here.bed.broker.topics.create(TopicName.parse("invoices"))
    refused = await LabLine(here, "tail").run("invoicse")
    assert refused.exit_code == 1
    assert refused.stderr.endswith("invoicse not found; did you mean invoices?\n")


@pytest.mark.parametrize("wrong", [("--from", "yesterday"), ("--from", "earliest", "--last", "3")])
async def test_a_place_that_is_none_is_refused(here: Live, wrong: tuple[str, ...]) -> None:
    assert (await LabLine(here, "tail").run("t", *wrong)).exit_code == 2
