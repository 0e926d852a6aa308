"""Ctrl-C, from the first moment of the process on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from pulsarium.cli.interrupts import GRACE_SECONDS, INTERRUPTED, closing_at_ctrl_c
from pulsarium.cli.main import cli
from tests.cli.interrupts import HEEDED
from tests.foreign.broker_process import Address, BrokerProcess
from tests.foreign.deadline import eventually


@pytest.fixture
def address(tmp_path: Path) -> Iterator[Address]:
    process = BrokerProcess(tmp_path)
    yield process.address
    assert process.stop() == 0


@pytest.mark.parametrize("command", ["serve", "exec", "admin", "client", "why", "capture", "conformance"])
def test_ctrl_c_while_a_command_is_imported_leaves_no_traceback(command: str) -> None:
    """The signal arrives during the import of the first module that the command line needs."""
    code = HEEDED + (
        "import os, sys\n"
        "class Hook:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pulsarium.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Hook())\n"
        "from pulsarium.__main__ import main; main()"
    )
    run = subprocess.run([sys.executable, "-P", "-c", code, command], check=False, capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, b"", b"")


def test_both_ways_in_begin_where_ctrl_c_is_seen_to() -> None:
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="pulsarium")
    assert command.value == "pulsarium.__main__:main"


def test_a_block_that_has_something_to_close_is_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), closing_at_ctrl_c():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_shell_that_ignores_ctrl_c_is_obeyed() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with closing_at_ctrl_c():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_conformance_run_whose_client_hangs(tmp_path: Path) -> None:
    """The adapter answers hello, and nothing else."""
    begun = tmp_path / "begun"
    adapter = (
        "import json, sys, pathlib\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    if request['do'] == 'hello':\n"
        "        told = {'protocol': 2, 'topics': ['classic'], 'operations': ['open', 'close']}\n"
        "        print(json.dumps({'id': request['id'], 'ok': told}), flush=True)\n"
        "    else:\n"
        f"        pathlib.Path({str(begun)!r}).touch()\n"
    )
    script = tmp_path / "adapter.py"
    script.write_text(adapter)
    start = HEEDED + "from pulsarium.__main__ import main; main()"
    line = [sys.executable, "-P", "-c", start, "conformance", "client", "--report", str(tmp_path / "report")]
    process = subprocess.Popen(
        [*line, "--command", f"{sys.executable} {script}", "--scenario", "a-batch-is-one-entry"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    eventually(begun.exists, what="the adapter was asked", seconds=50)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate()
    assert process.returncode == INTERRUPTED, (said + errors).decode()


class Consuming(NamedTuple):
    """A `pulsarium client consume` that has subscribed, and a command line for its broker."""

    process: subprocess.Popen[bytes]
    address: Address

    def said(self, *arguments: str) -> str:
        environment = {"PULSARIUM_ADMIN_URL": self.address.admin_url}
        result = CliRunner().invoke(cli, arguments, prog_name="pulsarium", env=environment)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def interrupt(self) -> tuple[int, bytes]:
        """Interrupt the process. Return its exit code and its output."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        return self.process.returncode, out + err


@contextmanager
def consumer_of(address: Address, grace_seconds: float) -> Iterator[Consuming]:
    """Run `pulsarium client consume` with this much time to close at Ctrl-C, and no line about a slow answer."""
    topic = f"persistent://public/default/{uuid.uuid4()}"
    start = HEEDED + (
        "from pulsarium.__main__ import main; from pulsarium.cli import interrupts\n"
        "from pulsarium.client.connection import pool\n"
        f"interrupts.GRACE_SECONDS, pool.SLOW = {grace_seconds}, 600.0; main()"
    )
    line = [sys.executable, "-P", "-c", start, "client", "--url", address.service_url, "consume", topic, "-s", "sub"]
    with subprocess.Popen([*line, "-n", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        consuming = Consuming(process, address)
        try:
            listing = ("admin", "topics", "list", "public/default")
            eventually(lambda: topic in consuming.said(*listing), what="a topic")
            eventually(
                lambda: "sub" in consuming.said("admin", "topics", "subscriptions", topic), what="a subscription"
            )
            yield consuming
        finally:
            process.kill()


def test_ctrl_c_closes_the_consumer_and_ends_with_130(address: Address) -> None:
    """A busy machine may need more than the usual time for it."""
    with consumer_of(address, grace_seconds=60) as consuming:
        consuming.said("fault", "observe", "CLOSE_CONSUMER")
        assert consuming.interrupt() == (130, b"")
        # A client that is interrupted before it has read that it is subscribed does not wait for the answer.
        eventually(lambda: json.loads(consuming.said("fault", "list", "--json"))[0]["hits"] == 1, what="CLOSE_CONSUMER")


def test_ctrl_c_does_not_wait_for_a_broker_that_does_not_answer(address: Address) -> None:
    """The client alone would wait for half a minute."""
    with consumer_of(address, GRACE_SECONDS) as consuming:
        consuming.said("fault", "add", "CLOSE_CONSUMER", "stall", "--forever")
        assert consuming.interrupt() == (130, b"")
