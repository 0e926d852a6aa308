from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import pytest

from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from tests.bench.bench import BY_NAME
from tests.client.refusing import refusing_port
from yardsticks.bench.accounting import ProcessGoneError, cpu_seconds, memory
from yardsticks.bench.brokers import Broker
from yardsticks.bench.measure import MeasureError, measure
from yardsticks.bench.programs import PROGRAMS
from yardsticks.bench.wire import SEND_RECEIPT, WireError, count_commands


def test_a_program_that_fails_says_why() -> None:
    refused = pytest.raises(MeasureError, match=r"(?s)raw-publish-unbatched on pulsar://.*ConnectionRefusedError")
    with refusing_port() as port, refused:
        nowhere = Broker(f"pulsar://127.0.0.1:{port}", f"http://127.0.0.1:{port}", os.getpid())
        measure(BY_NAME["raw-publish-unbatched"], nowhere, "persistent://public/default/t", 1)


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(PROGRAMS)


TICK = 0.02  # in seconds: times() rounds the user time and the system time to a hundredth each


def test_cpu_is_user_and_system_time_of_the_process() -> None:
    def mine() -> float:
        times = os.times()
        return times.user + times.system

    before, found, after = mine(), cpu_seconds(os.getpid()), mine()
    assert before - TICK <= found <= after + TICK


def test_cpu_grows_with_work_and_not_with_time() -> None:
    before = cpu_seconds(os.getpid())
    clock = time.process_time()
    sum(range(200_000))
    spent = time.process_time() - clock
    assert spent <= cpu_seconds(os.getpid()) - before


def test_memory_counts_what_a_process_holds() -> None:
    before = memory(os.getpid())
    with mmap.mmap(-1, 30_000_000, flags=mmap.MAP_PRIVATE) as held:  # not memory that an earlier test freed
        held.write(bytes([1]) * len(held))
        after = memory(os.getpid())
    assert after.anonymous - before.anonymous > 25_000_000
    assert after.resident >= after.anonymous


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    with pytest.raises(ProcessGoneError):
        cpu_seconds(process.pid)
    with pytest.raises(ProcessGoneError):
        memory(process.pid)


RECEIPT = BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt={"producer_id": 0, "sequence_id": 0})
ERROR = BaseCommand(
    type=BaseCommand.SEND_ERROR, send_error={"producer_id": 0, "sequence_id": 0, "error": 0, "message": ""}
)
PING = BaseCommand(type=BaseCommand.PING, ping={})


def test_only_the_wanted_commands_may_come() -> None:
    receipt, ping = RECEIPT.SerializeToString(), PING.SerializeToString()
    assert count_commands([receipt, ping, receipt], SEND_RECEIPT) == 2
    with pytest.raises(WireError, match="SEND_ERROR"):
        count_commands([receipt, ERROR.SerializeToString()], SEND_RECEIPT)
