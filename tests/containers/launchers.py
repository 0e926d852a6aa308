"""Runs the examples that start our image, and records what was seen.

`PYTHONPATH=. python -P -m tests.containers.launchers` writes docs/launchers.json, of which docs/launchers.md is made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree as ET

from scripts.pages.launchers import RECORD, Seen, write_record
from tests.foreign.toolchains import CARGO_TEST, GO, HELPER_RUST, JAVA, RECIPES_RUST, ROOT, Toolchain, require

from .conftest import IMAGE, engine_with_image

SECONDS = 600
"""Limit of an example in seconds. Alone each takes less than a minute; one that hangs on a busy machine ends here."""

EXAMPLES = ROOT / "examples"
SMALL_JVM = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

Outcome: TypeAlias = tuple[dict[str, str], list[str], list[str]]


@dataclass(frozen=True)
class Launcher:
    """An example: the command of its tests, the libraries with relevant versions, and the reader of its results."""

    toolchain: Toolchain
    command: Sequence[str]
    libraries: Sequence[str]
    outcome: Callable[[Launcher, str], Outcome]

    @property
    def name(self) -> str:
        return self.toolchain.folder.name

    def run(self, image: str) -> tuple[Seen, str]:
        """Run the example with `image`. Return the results and the output."""
        require(self.toolchain)
        done = subprocess.run(
            self.command,
            cwd=self.toolchain.folder,
            env={**os.environ, "PULSARIUM_IMAGE": image},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        versions, passed, failed = self.outcome(self, done.stdout)
        if done.returncode and not failed:
            failed = ["build"]
        return Seen(self.name, versions, sorted(passed), sorted(failed)), done.stdout


def _surefire(launcher: Launcher, printed: str) -> Outcome:
    """Read the reports of Maven's test runner: the tests, and the jars that they ran with."""
    versions: dict[str, str] = {}
    passed: list[str] = []
    failed: list[str] = []
    for report in (launcher.toolchain.folder / "target" / "surefire-reports").glob("TEST-*.xml"):
        suite = ET.parse(report).getroot()
        paths = "".join(
            each.get("value", "") for each in suite.iter("property") if each.get("name", "").endswith("class.path")
        )
        for library in launcher.libraries:
            if jar := re.search(rf"/{re.escape(library)}-(\d[\w.]*?)\.jar", paths):
                versions[library] = jar[1]
        for case in suite.iter("testcase"):
            bad = case.find("failure") is not None or case.find("error") is not None
            (failed if bad else passed).append(case.get("name", ""))
    return versions, passed, failed


def _go_test(launcher: Launcher, printed: str) -> Outcome:
    """Read what `go test -json` prints."""
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    ended = {event["Test"]: event["Action"] for event in events if event.get("Test")}
    modules = (launcher.toolchain.folder / "go.mod").read_text()
    versions = {
        library: found[1] for library in launcher.libraries if (found := re.search(rf"{library} v(\S+)", modules))
    }
    passed = [test for test, action in ended.items() if action == "pass"]
    return versions, passed, [test for test in ended if test not in passed]


def _cargo_test(launcher: Launcher, printed: str) -> Outcome:
    """Read what `cargo test` prints."""
    ended = dict(re.findall(r"^test (\S+) \.\.\. (\w+)", printed, re.M))
    lock = (launcher.toolchain.folder / "Cargo.lock").read_text()
    versions = {
        library: found[1]
        for library in launcher.libraries
        if (found := re.search(rf'^name = "{library}"\nversion = "(.+)"', lock, re.M))
    }
    passed = [test for test, outcome in ended.items() if outcome == "ok"]
    return versions, passed, [test for test in ended if test not in passed]


def _maven(example: str, *libraries: str) -> Launcher:
    toolchain = Toolchain(EXAMPLES / example, JAVA.tools, JAVA.sources, "target/test-classes")
    return Launcher(toolchain, ("mvn", "-B", "-o", "test", f"-DargLine={SMALL_JVM}"), libraries, _surefire)


LAUNCHERS = (
    _maven("testcontainers-java", "testcontainers-pulsar", "pulsar-client-original"),
    Launcher(
        Toolchain(EXAMPLES / "testcontainers-go", GO.tools, GO.sources, GO.built),
        ("env", "CGO_ENABLED=0", "GOPROXY=off", "go", "test", "-mod=readonly", "-count=1", "-json", "."),
        ("testcontainers-go/modules/pulsar", "pulsar-client-go"),
        _go_test,
    ),
    _maven("spring-boot", "spring-boot-testcontainers", "spring-pulsar", "testcontainers-pulsar"),
    _maven("quarkus", "quarkus-messaging-pulsar", "pulsar-client-original"),
    Launcher(
        Toolchain(EXAMPLES / "testcontainers-rust", HELPER_RUST.tools, HELPER_RUST.sources, RECIPES_RUST.built),
        CARGO_TEST,
        ("testcontainers-modules", "testcontainers", "pulsar"),
        _cargo_test,
    ),
)


def main() -> None:
    """Build the image, run all and record; the exit code says whether all passed."""
    engine_with_image()
    failed = False
    seen = []
    for launcher in LAUNCHERS:
        one, printed = launcher.run(IMAGE)
        seen.append(one)
        print(f"{one.launcher}: {len(one.passed)} passed, {len(one.failed)} failed")
        if one.failed:
            failed = True
            print(printed)
    write_record(seen)
    print(f"recorded in {RECORD}; scripts/generate-docs makes the page of it")
    sys.exit(failed)


if __name__ == "__main__":
    main()
