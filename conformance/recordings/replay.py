"""Plays scenarios against brokers, several at a time, and compares what each said with the recordings."""

from __future__ import annotations

import base64
import http.client
import queue
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from pulsarium.capture.reports import printable_xml
from pulsarium.conformance.recordings.catalogue import Recorded
from pulsarium.conformance.recordings.compare import compare
from pulsarium.conformance.recordings.releases import PULSAR_4, Release


class BrokerError(RuntimeError):
    """A failure to get a broker for the replay, with the reason."""


@dataclass(frozen=True)
class Broker:
    """A broker to replay against.

    `is_own` tells one of Pulsarium that nobody else uses: a steered clock takes the place of waits. `obituary` returns
    the end of the log of a broker that has ended, or None.
    """

    service_url: str
    admin_url: str
    is_own: bool = False
    obituary: Callable[[], str | None] = lambda: None

    @classmethod
    def running(cls, service_url: str, admin_url: str) -> Broker:
        """Return a broker that runs already. Raise `BrokerError` for a wrong URL, and where no broker answers."""
        admin_url = admin_url.rstrip("/")
        if not re.fullmatch(r"pulsar://[^/:]+:\d+", service_url):
            raise BrokerError(f"the service URL {service_url} is not of the form pulsar://HOST:PORT")
        if not admin_url.startswith("http://"):
            raise BrokerError(f"the URL of the REST API {admin_url} is not of the form http://HOST:PORT")
        try:
            with urllib.request.urlopen(f"{admin_url}/admin/v2/clusters", timeout=30):
                pass
        except urllib.error.HTTPError:
            pass  # a broker that wants a token
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "reason", error)
            raise BrokerError(f"no broker's REST API answers at {admin_url}: {why}. Start the broker first") from None
        return cls(service_url, admin_url)

    @property
    def is_here(self) -> bool:
        """Return whether the kernel of this machine tells what the broker has read, so that order can be kept."""
        return sys.platform == "linux" and self.binary.startswith("127.0.0.1:")

    @property
    def binary(self) -> str:
        """Return the host and port of the binary protocol."""
        return self.service_url.removeprefix("pulsar://")


NewBroker = Callable[[str], AbstractContextManager[Broker]]


@dataclass(frozen=True)
class Verdict:
    """The result of one scenario: `same` of `total` answers are equal.

    `words` shows the differences, and `answers` names each answer that differs. `trouble` says why a recording is
    missing, and `plays` counts the plays.
    """

    scenario: Recorded
    same: int
    total: int
    words: str = ""
    trouble: str = ""
    plays: int = 1
    answers: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.trouble and self.same == self.total

    @property
    def line(self) -> str:
        """Return a line such as `equal     12 of   12  001-connect-versions`."""
        word = "TROUBLE" if self.trouble else "equal" if self.equal else "DIFFER"
        return f"{word:7} {self.same:4} of {self.total:4}  {self.scenario.name}"


@dataclass(frozen=True)
class Replay:
    """A run that writes its recordings to `out`. With `texts`, the wording of errors is compared too."""

    out: Path
    texts: bool = False
    release: Release = PULSAR_4

    def run(
        self,
        scenarios: Sequence[Recorded],
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
        self, scenarios: Sequence[Recorded], new_broker: NewBroker, jobs: int, tell: Callable[[Verdict], None]
    ) -> list[Verdict]:
        """Play the longest scenarios first on several brokers, which keeps them evenly busy, else in order of number.

        Every order is right for our brokers: scenarios have namespaces of their own, and share only counters that the
        comparison masks.
        """
        waiting: queue.SimpleQueue[Recorded] = queue.SimpleQueue()
        for scenario in sorted(scenarios, key=lambda s: -s.seconds if jobs > 1 else s.number):
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
        self, name: str, waiting: queue.SimpleQueue[Recorded], new_broker: NewBroker, heard: Callable[[Verdict], None]
    ) -> None:
        """Play waiting scenarios. A broker that ends fails its scenario, and a new broker plays the next one."""
        scenarios = _drain(waiting)
        for scenario in scenarios:
            following: Recorded | None = scenario
            with new_broker(name) as broker:
                while following is not None:
                    heard(self.play(following, broker))
                    following = next(scenarios, None) if broker.obituary() is None else None

    def play(self, scenario: Recorded, broker: Broker) -> Verdict:
        """Record one scenario, and compare the recording with that of the real broker."""
        command = [sys.executable, "-P", "-m", "pulsarium.conformance.recordings.record", "--out", str(self.out)]
        command += ["--broker", broker.binary, "--admin", broker.admin_url, "--profile", scenario.profile]
        command += ["--release", self.release.name]
        if broker.is_here:
            command.append("--in-order")
        if broker.is_own and self.release.scalable:
            command.append("--steered")
        if scenario.profile == "auth":
            command += ["--secret", _token_secret()]
        limit = 60 + 4 * scenario.seconds
        try:
            recording = subprocess.run(
                [*command, scenario.name], check=False, capture_output=True, text=True, timeout=limit
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

    def compare(self, scenario: Recorded) -> Verdict:
        """Set what was recorded in `out` against the golden recordings."""
        try:
            golden = self.release.recording(scenario.name).parent
            absent = frozenset[str]() if golden == self.release.folder else self.release.absent_flags
            found = compare(golden, self.out, scenario.name, self.texts, absent)
        except ValueError as error:
            return Verdict(scenario, 0, 0, trouble=f"the recording cannot be read: {error!r}")
        return Verdict(scenario, found.same, found.total, "\n".join(found.words), answers=found.answers)


def _drain(waiting: queue.SimpleQueue[Recorded]) -> Iterator[Recorded]:
    while True:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return


def _token_secret() -> str:
    """Return the test key that signs tokens of the auth profile. The broker's configuration has the key in base64."""
    found = re.search(r"^tokenSecretKey=data:;base64,(.+)$", PULSAR_4.config("auth").read_text(), re.MULTILINE)
    if found is None:
        raise BrokerError("auth.conf holds no tokenSecretKey")
    return base64.b64decode(found[1]).decode()


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return how many scenarios and answers are equal."""
    equal = sum(verdict.equal for verdict in verdicts)
    same, total = sum(verdict.same for verdict in verdicts), sum(verdict.total for verdict in verdicts)
    share = 100 * same / total if total else 0.0
    return f"{equal} of {len(verdicts)} scenarios equal, {same} of {total} answers ({share:.1f}%)"


def write(verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write the differences of each scenario, and all verdicts as JUnit XML. Return the paths."""
    paths, suite = [], ET.Element("testsuite", name="conformance of a broker", tests=str(len(verdicts)))
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", classname="recordings", name=verdict.scenario.name)
        path = folder / f"{verdict.scenario.name}.diff"
        if verdict.equal:
            path.unlink(missing_ok=True)  # of an earlier run
            continue
        path.write_text("\n".join(filter(None, [verdict.trouble, verdict.words])) + "\n", "utf-8")
        paths.append(path)
        reason = verdict.trouble or f"{verdict.total - verdict.same} of {verdict.total} answers differ: see {path.name}"
        failure = ET.SubElement(case, "error" if verdict.trouble else "failure", message=printable_xml(reason))
        failure.text = printable_xml(verdict.scenario.purpose)
    path = folder / "broker.xml"
    path.write_text(ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n", "utf-8")
    return [*paths, path]
