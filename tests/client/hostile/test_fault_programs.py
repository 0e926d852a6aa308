"""Random programs of a client, with random faults on its connections: the client loses no message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.client.connection.settings import Settings
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.client.opening import open_client
from tests.client.both import run_on
from tests.client.hostile.faults import Fault, faults
from tests.client.hostile.left_over import nothing_left
from tests.client.hostile.programs import PROGRAMS, Notes, Program, run
from tests.client.hostile.proxy import Proxy
from tests.client.in_process import InProcess, in_process

# Seconds on a clock that jumps.
TIMES: dict[str, Any] = {
    "operation_timeout": 3.0,
    "connection_timeout": 1.0,
    "keep_alive_interval": 4.0,
    "max_backoff_interval": 2.0,
}
FAULTY = 30.0  # faults end after this time, or with the program
UNKNOWN = (-1, -1)  # the id in the second receipt of a deduplicated message
RECOVERY = 60.0  # after the faults, until all messages must have arrived


async def trial(program: Program, faults: Sequence[Fault], deduplicates: bool, honest: bool) -> None:
    notes = Notes()
    async with in_process(Config(brokerDeduplicationEnabled=deduplicates)) as inside:
        async with anyio.create_task_group() as tasks:
            proxy = Proxy(inside.dial, faults, tasks)
            async with (
                open_client("pulsar://here:6650", Settings(dial=proxy.dial, **TIMES)) as client,
                anyio.create_task_group() as running,
            ):
                done = anyio.Event()
                running.start_soon(_run, program, client, notes, done)
                with anyio.move_on_after(FAULTY):
                    await done.wait()
                proxy.heal()
                with anyio.fail_after(RECOVERY):
                    await done.wait()
                await nothing_left(client)
            assert all(stream.is_closed for stream in proxy.streams)
            tasks.cancel_scope.cancel()
        notes.check()
        if honest:
            await _truth(inside, program, notes, deduplicates)


async def _run(program: Program, client: Any, notes: Notes, done: anyio.Event) -> None:
    await run(program, client, notes)
    done.set()


async def _truth(inside: InProcess, program: Program, notes: Notes, deduplicates: bool) -> None:
    """Compare the application's results with the broker's final state."""
    async with inside.client() as client:
        stored: list[tuple[bytes, Any]] = []
        left: list[bytes] = []
        async with client.subscribe("t", "all", initial_position=InitialPosition.Earliest) as consumer:
            with anyio.move_on_after(5):
                while True:
                    message = await consumer.receive()
                    stored.append((message.data(), message.message_id()))
        shared = program.consumer.options["consumer_type"]
        async with client.subscribe(
            "t", "s", initial_position=InitialPosition.Earliest, consumer_type=shared
        ) as consumer:
            with anyio.move_on_after(5):
                while True:
                    left.append((await consumer.receive()).data())
    first = list(dict.fromkeys(content for content, _ in stored))
    assert set(notes.published) <= set(first), "a message with a receipt is lost"
    told = {(content, place) for content, place in notes.published.items() if place.entry != UNKNOWN}
    if deduplicates or not program.producer.options.get("chunking_enabled"):  # repeated chunks may be joined anew
        assert told <= set(stored), "a receipt has another message id than the stored message"
    assert first == [content for content in notes.contents if content in set(first)], "the order changed"
    if deduplicates:
        assert len(first) == len(stored), "a message is stored twice"
        assert not notes.acknowledged & set(left), "an acknowledged message was redelivered"
    assert set(first) <= set(left) | notes.tried, "the subscription lost a message"
    assert notes.read == first[: len(notes.read)] or not deduplicates, "the reader missed or repeated something"


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, list[Fault], bool, bool]:
    honest = draw(st.booleans())
    return (
        draw(PROGRAMS),
        draw(st.lists(faults(honest=honest), min_size=1, max_size=5)),
        draw(st.booleans()),
        honest,
    )


def check(case: tuple[Program, list[Fault], bool, bool]) -> None:
    run_on("trio", trial, *case, jump=True)


@given(cases())
@settings(max_examples=20, derandomize=True)
def test_under_some_faults_nothing_is_lost_and_nothing_is_left_behind(
    case: tuple[Program, list[Fault], bool, bool],
) -> None:
    check(case)


@pytest.mark.heavy
@given(cases())
@settings(max_examples=1000, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_under_a_thousand_faults_nothing_is_lost_and_nothing_is_left_behind(
    case: tuple[Program, list[Fault], bool, bool],
) -> None:
    check(case)
