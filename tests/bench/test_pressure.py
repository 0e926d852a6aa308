"""The bench of what one client's work costs the others, and of how long it holds the broker's loop.

Sends beside a load are compared with sends without it.
"""

from __future__ import annotations

import gc
import math
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from yardsticks.bench.accounting import PING_SECONDS, Pulse
from yardsticks.bench.brokers import Broker, launched
from yardsticks.bench.drivers import neighbours
from yardsticks.bench.measure import Run
from yardsticks.bench.pressure import loop, watched
from yardsticks.bench.pressure.command import main
from yardsticks.bench.pressure.loop import Held, Step, Steps
from yardsticks.bench.pressure.pieces import PIECES, Piece, flood
from yardsticks.bench.report import Results
from yardsticks.bench.wire import PING, Connection, lookup
from yardsticks.bench.work import Done, Work
from yardsticks.servers import ROOT

CONNECTED = frame(BaseCommand(type=BaseCommand.CONNECTED, connected={"server_version": "x"}).SerializeToString())
PONG = frame(BaseCommand(type=BaseCommand.PONG, pong={}).SerializeToString())

HELD_MS = 200
SLOW_BROKER = f"""\
import functools, time
from yardsticks.bench.pressure import watched
from pulsarium.broker.commands import lookup

answer = lookup.lookup

@functools.wraps(answer)
def held(*given):
    until = time.thread_time() + {HELD_MS / 1000}
    while time.thread_time() < until:
        pass
    answer(*given)

lookup.lookup = held
watched.main()
"""
"""A broker with a planted fault: each LOOKUP holds its event loop."""


@pytest.mark.heavy
@pytest.mark.timeout(600)  # a broker for each piece of work takes a minute and a half on a busy machine
def test_every_piece_of_work_has_a_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 0.01)
    assert main([*(piece.name for piece in PIECES), "--rounds", "1", "--scale", "0.0005"]) == 0
    told = capsys.readouterr().out
    rows = [line.split(" | ")[0][2:] for line in told.splitlines()[4:] if line.startswith("| ")]
    assert rows == [piece.title for piece in PIECES]


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Broker, Steps]]:
    """Run a broker whose LOOKUP holds its loop."""
    (script := tmp_path / "slow_broker.py").write_text(SLOW_BROKER)
    with launched([sys.executable, "-P", str(script), str(tmp_path / "steps"), "serve"], ROOT) as launch:
        yield launch.broker, Steps(tmp_path / "steps")


def ping(broker: Broker, connection: Connection, count: int) -> None:
    connection.send(BaseCommand.FromString(PING))
    connection.expect(BaseCommand.PONG)


def one_lookup(broker: Broker, connection: Connection, count: int) -> None:
    connection.ask(BaseCommand.LOOKUP_RESPONSE, [lookup("persistent://public/default/t")])


def piece_of(work: object = ping) -> Piece:
    return Piece("x", "a piece of work", 1, lambda broker, count: Connection(broker.service_url), work)  # type: ignore[arg-type]


@pytest.mark.heavy
def test_a_handler_that_holds_the_loop_misses_the_targets(slow: tuple[Broker, Steps]) -> None:
    broker, steps = slow
    connection = Connection(broker.service_url)
    with connection.socket:
        calm = loop.once(broker, steps, piece_of(ping), connection, 1)
        held = loop.once(broker, steps, piece_of(one_lookup), connection, 1)
    assert loop.figures(piece_of(), [calm])[0].met
    assert [figure.met for figure in loop.figures(piece_of(), [held])] == [False, False]
    assert HELD_MS <= held.step.work < 10 * HELD_MS
    assert "session/gate._handle" in held.step.place
    assert max(held.pongs) > HELD_MS / 2


@pytest.mark.heavy
def test_a_flood_ends_after_its_time(slow: tuple[Broker, Steps]) -> None:
    broker, _ = slow
    request = BaseCommand(type=BaseCommand.LOOKUP)
    request.lookupTopic.topic, request.lookupTopic.request_id = "persistent://public/default/t", 1
    data = frame(request.SerializeToString())
    assert not flood(Connection(broker.service_url), [data * 100], 0.5)
    assert flood(Connection(broker.service_url), [frame(PING) * 100], 60)
    assert not flood(Connection(broker.service_url), [bytes(8)], 60)  # no frame, so the broker ends the connection


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def steps_of(*works: object) -> None:
    for work in works:
        await trio.lowlevel.checkpoint()
        work()  # type: ignore[operator]
    await trio.lowlevel.checkpoint()


def noted(*works: object) -> list[Step]:
    """Return the noted steps of a loop that does one piece of work in each step."""
    lines: list[str] = []
    trio.run(steps_of, *works, instruments=[watched.Watch(lines.append)])
    return [Step(float(work), float(collection), place) for work, collection, place in map(str.split, lines)]


def test_a_long_step_is_noted_with_its_place() -> None:
    longest = max(noted(lambda: burn(0.3), lambda: None, lambda: burn(0.01)))  # so long that it is surely looked at
    assert 300 <= longest.work < 1000  # milliseconds
    assert longest.place.startswith("bench/test_pressure.burn<")


def test_garbage_collection_is_no_part_of_the_work() -> None:
    garbage = [[number] for number in range(200_000)]  # which takes some milliseconds to look at
    longest = max(noted(gc.collect), key=lambda step: step.collection)
    assert len(garbage) == 200_000
    assert longest.collection > 1
    assert longest.work < longest.collection


def collect_in_another_thread() -> None:
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()


def test_garbage_collection_of_another_thread_is_noted() -> None:
    garbage = [[number] for number in range(200_000)]
    found = noted(collect_in_another_thread)
    assert len(garbage) == 200_000
    assert [step for step in found if step.collection > 1 and step.work == 0] != []


def test_steps_are_read_line_by_line(tmp_path: Path) -> None:
    steps = Steps(file := tmp_path / "steps")
    file.write_text("12.5 0 a.b\n7 3")
    assert steps.new() == [Step(12.5, 0, "a.b")]
    file.write_text("12.5 0 a.b\n7 3.5 -\n")
    assert steps.new() == [Step(7, 3.5, "-")]
    assert steps.new() == []


def held(step: float = 4, pong: float = 1) -> Held:
    return Held(Step(step, 3, "topic/patterns.select"), 3, [0.2, pong], 1, 1, 1)


def test_a_table_names_the_targets_that_are_missed() -> None:
    quick, slow, waited = (Piece(name, name, 1, piece_of().prepare, ping) for name in ("quick", "slow", "waited"))
    table = loop.table({quick: [held(), held(49)], slow: [held(), held(51)], waited: [held(pong=200)]})
    rows = {line.split(" | ")[0][2:]: line for line in table.splitlines() if line.startswith("| ")}
    assert "MISSED" not in rows["quick"]
    assert "| 51 MISSED |" in rows["slow"]
    assert rows["waited"].count("MISSED") == 1
    assert table.splitlines()[-1] == "slow: 51 ms, mostly in topic/patterns.select"


def test_a_broker_that_notes_no_steps_has_no_figure_of_them() -> None:
    (step,) = Steps(None).new()
    found = {piece_of(): [Held(step, step.collection, [0.2, 1.0], 1, 1, 1)]}
    assert math.isnan(step.work)
    assert "| a piece of work | - | - |" in loop.table(found)
    assert not loop.missed(found)


@pytest.mark.parametrize(("step", "code"), [(49, 0), (51, 1)])
def test_check_fails_for_a_target_that_is_missed(step: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "measure", lambda pieces, *_: {piece: [held(step)] for piece in pieces})
    assert main(["metrics", "--check"]) == code


def test_a_pulse_tells_the_longest_time_between_two_answers() -> None:
    begun, over, ended = threading.Event(), threading.Event(), threading.Event()
    pings = 100  # without an answer, with at least PING_SECONDS between two

    def broker(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        decoder, answers, holds = FrameDecoder(), list[bytes](), False
        with connection:
            while data := connection.recv(1 << 16):
                asked = [BaseCommand.FromString(command).type for command, _ in decoder.feed(data)]
                answers += [CONNECTED if each == BaseCommand.CONNECT else PONG for each in asked]
                if holds and len(answers) < pings:
                    continue
                connection.sendall(b"".join(answers))
                answers.clear()
                if holds:
                    over.set()
                holds = begun.is_set() and not over.is_set()
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=broker, args=(listener,), daemon=True).start()
        with Pulse(f"pulsar://127.0.0.1:{listener.getsockname()[1]}") as pulse:
            begun.set()
            assert over.wait(60)
        assert ended.wait(60)
    pause = pings * PING_SECONDS / 2  # at least: a busy machine may carry the last PONG before it late
    assert pulse.gap > pause
    assert max(pulse.waits) > pause
    assert len([wait for wait in pulse.waits if wait > pause / 2]) > 1  # a PING does not wait for the previous PONG


WORK = Work("pulsar://127.0.0.1:1", "persistent://public/default/t", 10, 10, 0, "http://127.0.0.1:1")


def test_sends_beside_a_flood_are_compared_with_sends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    p99s = iter([1.0, 2.9, 3.1])
    floods: list[str] = []

    @contextmanager
    def beside(*loads: object, service_url: str, topic: str) -> Iterator[None]:
        floods.append(topic)
        yield

    monkeypatch.setattr(neighbours, "beside", beside)
    monkeypatch.setattr(neighbours, "sends", lambda work: Done(10, parts={"p50": 0.5, "p99": next(p99s)}, seconds=1))
    done = neighbours.flooded(WORK)()
    assert floods == [f"{WORK.topic}-flood", WORK.topic]
    run = Run(done.operations, 1, 0, 0, (), done.parts)
    results = Results(["pulsarium"], programs={"raw-flood": {"pulsarium": [run]}})
    met = {figure.name: figure.met for figure in results.figures() if figure.targets}
    assert met == {"raw-flood.over": True, "raw-flood.same-over": False}
