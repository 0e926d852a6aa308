from __future__ import annotations

import os
import sys

import pytest

from pulsarium.proto import batch, entry
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from yardsticks.bench.drivers import perf
from yardsticks.bench.drivers.perf import BATCH, Moment, PerfError, Tool, batches, command
from yardsticks.bench.work import Work
from yardsticks.servers.reference.jars import BROKER

WORK = Work("pulsar://127.0.0.1:1", "persistent://public/default/t", 1_000_000, 1024, os.getpid(), "http://127.0.0.1:1")
PRODUCED = "INFO stats: [t] --- Publish throughput: 50000.00 msg/s --- 1 Mbit/s --- Latency: med: 1.000 ms"
CONSUMED = (
    "INFO stats: [t] Prefetched: 0 --- Consume throughput received: 50000.00 msgs/s --- 1 Mbit/s --- Ack sent rate: 1"
)
BEFORE = "INFO Aggregated throughput stats --- 1 records sent\n"
"""A line of totals, which the reader of intervals ignores."""


def tool(monkeypatch: pytest.MonkeyPatch, script: str) -> Tool:
    monkeypatch.setattr(perf, "command", lambda arguments: [sys.executable, "-S", "-u", "-c", script])
    return Tool(WORK, [], "Created 1 producers")


@pytest.mark.parametrize("line", [PRODUCED, CONSUMED])
def test_measuring_begins_when_the_jvm_is_warm(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    moments = iter([Moment(second, 2 * second, 3 * second) for second in (1, 2, 3, 4, 5, 15)])
    watched = tool(monkeypatch, "")
    monkeypatch.setattr(watched, "_moment", lambda pid: next(moments))
    lines = [BEFORE, line, "INFO Created 1 producers", *[line] * 7, "INFO --- DONE (reached) ---"]
    done = watched._watch(lines, 0)
    assert (done.operations, done.seconds, done.broker_cpu, done.cpu) == (800_000, 10, 20, 30)


def test_at_least_half_of_the_operations_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([Moment(second, 0, 0) for second in (1, 2, 12)])
    watched = tool(monkeypatch, "")
    monkeypatch.setattr(watched, "_moment", lambda pid: next(moments))
    line = PRODUCED.replace("50000.00", "400000.00")
    done = watched._watch(["INFO Created 1 producers", line, line, "INFO --- DONE ---"], 0)
    assert (done.operations, done.seconds) == (600_000, 10)


def test_a_run_too_short_for_that_counts_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("Created 1 producers")
print("DONE (reached the maximum number: 1000000 of production)", flush=True)
signal.sigwait([signal.SIGTERM])
print("Aggregated latency stats --- Latency: mean:   1.0 ms - med: 1.1 - 95pct: 2.5 - 99pct:   3.250 - Max: 9")
sys.exit(1)
"""
    done = tool(monkeypatch, script).run()
    assert done.operations == WORK.count
    assert done.parts == {"p99": 3.25}
    assert done.seconds is not None
    assert done.seconds > 0


def test_the_error_of_pulsar_perf_has_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PerfError, match="no such topic"):
        tool(monkeypatch, "print('no such topic')").run()


def test_the_backlog_is_of_batches() -> None:
    frames = [frame for segment, _ in batches(2, 10) for frame in FrameDecoder().feed(segment)]
    sends = [BaseCommand.FromString(command).send for command, _ in frames]
    assert [(send.sequence_id, send.num_messages) for send in sends] == [(0, BATCH), (1, BATCH)]
    assert [entry.messages_in(trailing) for _, trailing in frames] == [BATCH, BATCH]
    [_, (_, trailing)] = frames
    assert batch.unpack(entry.payload_of(trailing), BATCH)[-1][1] == b"x" * 10


def test_the_command_has_the_jars_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "fetch", lambda cache, jars: f"/jars/{jars.folder}")
    words = command(["produce", "t"])
    assert words[:3] == ["java", "-cp", f"/jars/perf/*:/jars/{BROKER.folder}/*"]
    assert words[-4:] == ["org.apache.pulsar.testclient.PulsarPerfTestTool", os.devnull, "produce", "t"]
