"""Explore the applications of examples/explore: find the bug of each, and run its mended form.

usage: scripts/explore-examples [--runs N] [--mended-runs N] [--seed N] [--jobs N] [--only NAME]...

Writes the table of docs/explore-examples.md to the standard output. Needs `scripts/setup --foreign`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.foreign.toolchains import GO, JAVA

FOLDER = Path(__file__).parents[2] / "examples" / "explore"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
APPLICATIONS: Mapping[str, str] = {
    "ack_before_work": "acknowledges a message before its work is done",
    "no_idempotence": "does the work of a redelivered message again",
    "cumulative_ack": "acknowledges cumulatively while earlier messages wait",
    "OrderOnShared": "assumes an order on a Shared subscription",
    "IgnoredFencing": "goes on after its producer was fenced",
    "UnabortedTransaction": "does not abort a transaction after an error",
    "nack-loop": "negatively acknowledges a duplicate for ever",
    "seek-race": "ignores the error of a seek",
}
"""The bug of each application. Python has names with _, Java CamelCase, and Go names with -."""


@dataclass(frozen=True)
class Found:
    """Result of an exploration: the number of runs, the failure or "", and the least script."""

    runs: int
    failure: str
    script: Sequence[str]


def build_java(folder: Path) -> None:
    sources = sorted((FOLDER / "java").glob("*.java"))
    jars = JAVA.folder / "target" / "lib" / "*"
    subprocess.run(["javac", "-proc:none", "-cp", str(jars), "-d", str(folder), *map(str, sources)], check=True)


def build_go(folder: Path) -> None:
    """Build in the module of the tests, whose dependencies are fetched."""
    sources = sorted((FOLDER / "go").glob("*.go"))
    command = ["go", "build", "-mod=readonly", "-o", str(folder / "applications"), *map(str, sources)]
    subprocess.run(command, cwd=GO.folder, check=True)


def command_of(name: str, folder: Path) -> list[str]:
    """Return the command that runs an application, which was built in `folder`."""
    if "-" in name:
        return [str(folder / "applications"), name]
    if name[0].isupper():
        classes = f"{folder}:{JAVA.folder / 'target' / 'lib' / '*'}"
        return ["java", *JAVA_OPTIONS, QUIET, "-cp", classes, name]
    return [sys.executable, str(FOLDER / "python" / f"{name}.py")]


def explore(name: str, folder: Path, *, runs: int, seed: int, mended: bool, options: Sequence[str] = ()) -> Found:
    """Explore an application. Raise `RuntimeError` when the exploration itself fails."""
    head = [
        sys.executable,
        "-P",
        "-m",
        "pulsarium",
        "explore",
        "--persistent",
        "--runs",
        str(runs),
        "--seed",
        str(seed),
    ]
    head += ["--failures", str(folder / "failures"), "--timeout", "120", *options]
    command = [*command_of(name, folder), *(["--mended"] if mended else []), "--persistent"]
    run = subprocess.run([*head, "--", *command], cwd=folder, capture_output=True, text=True, check=False)
    (folder / "failures").unlink(missing_ok=True)
    made = re.search(r"^(\d+) runs?, ", run.stdout, re.M)
    if run.returncode not in (0, 1) or made is None:
        raise RuntimeError(run.stdout + run.stderr)
    if run.returncode == 0:
        return Found(int(made[1]), "", ())
    said = re.search(r"^failed: (?:failed )?(.*)$", run.stdout, re.M)
    least = run.stdout.partition("least script:")[2].partition("\n\n")[0]
    return Found(int(made[1]), said[1] if said else run.stdout, re.findall(r"^  (\S.*)$", least, re.M))


def through(service_url: str, admin_url: str) -> Sequence[str]:
    """Return options of an exploration through a proxy, in front of a broker that runs already."""
    return ("--proxy", service_url, "--proxy-admin-url", admin_url, "--delete-topics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs in which the bug has to be found")
    parser.add_argument("--mended-runs", type=int, default=2000, help="runs that the mended form has to pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4, help="runs of the mended form at a time: they mostly wait")
    parser.add_argument("--only", action="append", choices=APPLICATIONS, help="explore only this application")
    asked = parser.parse_args()
    chosen = asked.only or list(APPLICATIONS)
    wrong = []
    print("| application | bug | found in run | seed | faults | the least script | runs of the mended form |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if any(each[0].isupper() for each in chosen):
            build_java(folder)
        if any("-" in each for each in chosen):
            build_go(folder)
        for each in chosen:
            found = explore(each, folder, runs=asked.runs, seed=asked.seed, mended=False)
            at_a_time = ("--jobs", str(asked.jobs))
            mended = explore(each, folder, runs=asked.mended_runs, seed=asked.seed, mended=True, options=at_a_time)
            script = ", ".join(f"`{text}`" for text in found.script)
            passed = (
                f"fails in run {mended.runs}: {mended.failure}, {mended.script}"
                if mended.failure
                else f"{mended.runs} passed"
            )
            print(
                f"| `{each}` | {APPLICATIONS[each]} | {found.runs if found.failure else 'not found'} | {asked.seed} | "
                f"{len(found.script)} | {script} | {passed} |",
                flush=True,
            )
            if not found.failure or len(found.script) > 3 or mended.failure:
                wrong.append(each)
    sys.exit(f"not as expected: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
