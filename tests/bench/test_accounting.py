from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import pytest

from bench.accounting import ProcessGoneError, ProcessTree, cpu_seconds, memory, tree_of

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


PARENT = """
import subprocess, sys
program = "held = bytearray(b'x') * 50_000_000; print('held', flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", program])
child.wait()
"""


def test_a_tree_of_processes_is_a_process_and_its_descendants() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "held\n"
        with ProcessTree(parent.pid) as tree:
            assert len(tree_of(parent.pid)) == 2
        parent.communicate("\n")
    assert tree.peak > 50_000_000
    assert tree.cpu > 0
