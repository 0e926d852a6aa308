"""Plays scenarios against brokers, several at a time, and compares what each said with the recordings."""

from __future__ import annotations

import base64
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from yardsticks.recorder.compare import compare
from yardsticks.recorder.releases import PULSAR_4, TRANSCRIPTS, Release

from .brokers import Broker, BrokerError
from .catalogue import Scenario

ROOT = TRANSCRIPTS.parents[1]
NewBroker = Callable[[str], AbstractContextManager[Broker]]


@dataclass(frozen=True)
class Verdict:
    """The result of one scenario: `same` of `total` answers are equal.

    `trouble` says why a recording is missing, `answers` names each answer that differs, and `plays` counts the plays.
    """

    scenario: Scenario
    same: int
    total: int
    differences: str = ""
    trouble: str = ""
    plays: int = 1
    answers: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.trouble and self.same == self.total


@dataclass(frozen=True)
class Replay:
    """A run that writes its recordings to `out`. With `texts`, the wording of errors is compared too."""

    out: Path
    texts: bool = False
    release: Release = PULSAR_4

    def run(
        self,
        scenarios: Sequence[Scenario],
        new_broker: NewBroker,
        jobs: int,
        tell: Callable[[Verdict], None],
        good: Callable[[Verdict], bool] = lambda verdict: verdict.equal,
    ) -> list[Verdict]:
        """Play all scenarios on `jobs` brokers, and return their verdicts in order of number.

        `tell` is called with each verdict at once. The recorder waits a few hundred milliseconds for some answers.
        A busy machine may need longer, so a scenario that is not `good` is played once more, alone.

        Raise `BrokerError` when no broker starts.
        """
        verdicts = self._play_all(scenarios, new_broker, jobs, tell)
        failed = [v.scenario for v in verdicts if not good(v)]
        if failed:
            again = [replace(v, plays=2) for v in self._play_all(failed, new_broker, 1, lambda verdict: None)]
            for verdict in again:
                tell(verdict)
            verdicts = [v for v in verdicts if v.scenario not in failed] + again
        return sorted(verdicts, key=lambda v: v.scenario.number)

    def _play_all(
        self, scenarios: Sequence[Scenario], new_broker: NewBroker, jobs: int, tell: Callable[[Verdict], None]
    ) -> list[Verdict]:
        """Play the longest scenarios first, which keeps the brokers evenly busy.

        Every order is right: scenarios have namespaces of their own, and share only counters that the comparison masks.
        """
        waiting: queue.SimpleQueue[Scenario] = queue.SimpleQueue()
        for scenario in sorted(scenarios, key=lambda s: -s.seconds):
            waiting.put(scenario)
        verdicts: list[Verdict] = []
        telling = threading.Lock()

        failures: list[BrokerError] = []

        def heard(verdict: Verdict) -> None:
            with telling:
                verdicts.append(verdict)
                tell(verdict)

        def work(name: str) -> None:
            try:
                self._work(name, waiting, new_broker, heard)
            except BrokerError as error:
                failures.append(error)

        names = [f"broker-{n}" for n in range(min(jobs, len(scenarios)))]
        workers = [threading.Thread(target=work, args=(name,)) for name in names]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]
        return verdicts

    def _work(
        self, name: str, waiting: queue.SimpleQueue[Scenario], new_broker: NewBroker, heard: Callable[[Verdict], None]
    ) -> None:
        """Play waiting scenarios. A broker that ends fails its scenario, and a new broker plays the next one."""
        scenarios = _drain(waiting)
        for scenario in scenarios:
            following: Scenario | None = scenario
            with new_broker(name) as broker:
                while following is not None:
                    heard(self.play(following, broker))
                    following = next(scenarios, None) if broker.obituary() is None else None

    def play(self, scenario: Scenario, broker: Broker) -> Verdict:
        """Record one scenario, and compare the recording with that of the real broker."""
        command = [sys.executable, "-P", "-m", "yardsticks.recorder.record", "--out", str(self.out)]
        command += ["--broker", broker.binary, "--admin", broker.address.admin_url, "--profile", scenario.profile]
        command += ["--release", self.release.name]
        if broker.process is not None:
            command += ["--in-order", *(["--steered"] if self.release.steered else [])]
        if scenario.profile == "auth":
            command += ["--secret", _token_secret()]
        limit = 60 + 4 * scenario.seconds
        try:
            recording = subprocess.run(
                [*command, scenario.name],
                check=False,
                capture_output=True,
                text=True,
                timeout=limit,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        except subprocess.TimeoutExpired:
            return Verdict(scenario, 0, 0, trouble=f"no end after {limit:.0f} s")
        verdict = self.compare(scenario)
        if gone := broker.obituary():
            return replace(verdict, trouble=gone)
        said = (recording.stdout + recording.stderr).strip()
        if f"{scenario.name} ok " not in said:
            return replace(verdict, trouble=f"the recorder stumbled:\n{said}")
        return verdict

    def compare(self, scenario: Scenario) -> Verdict:
        """Set what was recorded in `out` against the golden recordings."""
        try:
            found = compare(self.release.folder, self.out, scenario.name, self.texts)
        except ValueError as error:
            return Verdict(scenario, 0, 0, trouble=f"the recording cannot be read: {error!r}")
        return Verdict(scenario, found.same, found.total, "\n".join(found.words), answers=found.answers)


def _drain(waiting: queue.SimpleQueue[Scenario]) -> Iterator[Scenario]:
    while True:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return


def _token_secret() -> str:
    """Return the test key that signs tokens of the auth profile. The broker's configuration has the key in base64."""
    found = re.search(
        r"^tokenSecretKey=data:;base64,(.+)$", (PULSAR_4.folder / PULSAR_4.configs["auth"]).read_text(), re.MULTILINE
    )
    if found is None:
        raise BrokerError("auth.conf holds no tokenSecretKey")
    return base64.b64decode(found[1]).decode()
