"""Start, watch and kill a broker in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import trio

from yardsticks.servers import free_port

START_SECONDS = 60.0
OPTIONS = {
    "activeConsumerFailoverDelayTimeMillis": "0",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    # small ledgers, so that the broker begins and deletes ledgers all the time
    "managedLedgerMaxEntriesPerLedger": "60",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "transactionCoordinatorEnabled": "true",
}


@dataclass(frozen=True)
class Manner:
    """Settings of one life of the broker, and the persist point at which the broker kills itself."""

    point: str | None = None
    """Name of the PersistPoint at which the broker kills itself, if any."""
    occurrence: int = 0
    armed: bool = True
    """True if occurrences count from the start, and not only from `Broker.arm` on."""
    apply_bytes: int = 1 << 20
    log_bytes: int = 1 << 18
    slice_rows: int = 3
    lie: str | None = None
    """Key of `lies.LIES`: the fault of a broker that the suite has to notice."""


class BrokerFailed(AssertionError):
    """The broker ended without a kill, or logged an error."""


class Broker:
    """The command `pulsarium serve` on one data directory and two ports, in one process after another."""

    def __init__(self, folder: Path, forker: trio.Process, durability: str) -> None:
        self.data = folder / "data"
        self.log = folder / "broker.log"
        self.log.touch()
        self._durability = durability
        self._forker = forker
        ports = [free_port() for _ in range(2)]
        self.service_url = f"pulsar://127.0.0.1:{ports[0]}"
        self.admin_url = f"http://127.0.0.1:{ports[1]}"
        self._ports = ports
        self._pid = 0
        self._read = 0
        self.forked = trio.Event()
        self.ready = trio.Event()
        self.ended = trio.Event()
        self.ended.set()
        self.killed = False
        """Tell whether `kill` ends this life of the broker. A broker may also kill itself."""

    async def start(self, manner: Manner) -> None:
        """Order the forker to start a broker, whose progress sets the events `forked`, `ready` and `ended`."""
        assert self.ended.is_set()
        self.forked, self.ready, self.ended = trio.Event(), trio.Event(), trio.Event()
        self.killed = False
        addresses = ["--port", str(self._ports[0]), "--http-port", str(self._ports[1])]
        storage = ["--data", str(self.data), "--durability", self._durability]
        settings = [word for key, value in OPTIONS.items() for word in ("--set", f"{key}={value}")]
        arguments = ["serve", "--with-parent", *addresses, *storage, *settings, "--log-level", "warning"]
        order = {**asdict(manner), "log": str(self.log), "arguments": arguments}
        assert self._forker.stdin is not None
        await self._forker.stdin.send_all(json.dumps(order).encode() + b"\n")

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self.killed = not self.ended.is_set()
        self._send(signal.SIGKILL)

    def arm(self) -> None:
        """Begin to count the occurrences of the broker's persist point."""
        self._send(signal.SIGUSR1)

    def _send(self, number: signal.Signals) -> None:
        if self._pid and not self.ended.is_set():
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    async def listen(self) -> None:
        """Read the forker's output, and set the events that it reports."""
        assert self._forker.stdout is not None
        rest = b""
        async for data in self._forker.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._heard(line.decode())

    def _heard(self, line: str) -> None:
        word, _, argument = line.partition(" ")
        if word == "pid":
            self._pid = int(argument)
            self.forked.set()
        elif word == "pulsarium":
            self.ready.set()
        elif word == "ended":
            self.status = int(argument)
            self._pid = 0
            self.ended.set()

    def check_end(self) -> None:
        """Raise `BrokerFailed` unless the broker ended by SIGKILL and logged no error before."""
        said = self.log.read_text(errors="replace")
        new, self._read = said[self._read :], len(said)
        if self.status != -signal.SIGKILL:
            raise BrokerFailed(f"the broker ended with {self.status}:\n{said[-4000:]}")
        if "Traceback" in new or " ERROR " in new:
            raise BrokerFailed(f"the broker complains:\n{new[-4000:]}")


@asynccontextmanager
async def broker_on(folder: Path, durability: str) -> AsyncIterator[Broker]:
    """Yield a broker to start, which keeps its data in `folder`, and kill it at the end."""
    command = [sys.executable, "-P", "-m", "yardsticks.crash.forking"]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    async with trio.open_nursery() as nursery:
        forker = await trio.lowlevel.open_process(
            command, stdin=pipe, stdout=pipe, start_new_session=True, env=environment
        )
        try:
            broker = Broker(folder, forker, durability)
            nursery.start_soon(broker.listen)
            yield broker
        finally:
            with trio.CancelScope(shield=True):
                assert forker.stdin is not None
                await forker.stdin.aclose()  # makes the forker kill the broker
                await forker.wait()
        nursery.cancel_scope.cancel()
