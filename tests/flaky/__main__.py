"""scripts/flaky: the everyday tests again and again, under load and in other orders; none may fail in any run."""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ABOUT = """\
Runs the everyday tests many times: under load, with every core kept busy by others, and with their files in a random
order. Tests that failed in any run are named at the end, with the runs in which they did.

  scripts/flaky                                       20 runs under load, 5 in random order: hours
  scripts/flaky --loaded 3 --shuffled 0 tests/client  some of it
  scripts/flaky --loaded 0 --shuffled 1 --seed 7      one order again; run 2 of it has seed 8

Whatever is no option of this script is one of pytest. The output of run N is kept in build/flaky/N.txt.

Exit code 0: all runs passed. 1: some did not, and which tests failed.
"""
OUTPUT = Path("build/flaky")
PYTEST = (sys.executable, "-P", "-m", "pytest", "-n", "auto", "--dist", "loadfile", "-q", "--show-capture=no")
SLOWLY = ("--timeout", "300")  # the time limit in seconds of a test without its own limit
# This program ends when the process that started it ends for any reason.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def arguments() -> tuple[argparse.Namespace, list[str]]:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("flaky", description=ABOUT, formatter_class=layout, allow_abbrev=False)
    parser.add_argument("--loaded", type=int, default=20, metavar="N", help="runs under load (default: 20)")
    parser.add_argument("--shuffled", type=int, default=5, metavar="N", help="runs in random order (default: 5)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the first random order (default: at random)")
    return parser.parse_known_args()


@contextmanager
def load() -> Iterator[None]:
    """Keep as many processes busy as there are cores."""
    busy = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def failures(run: int, options: Sequence[str]) -> list[str]:
    """Run the tests once; return the names of those that failed, or how pytest ended if no test did."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    output = OUTPUT / f"{run}.txt"
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    with output.open("w") as file:
        code = subprocess.run(
            [*PYTEST, *SLOWLY, *options], stdout=file, stderr=file, env=environment, check=False
        ).returncode
    names = FAILURE.findall(output.read_text())
    return names if names or not code else [f"pytest ended with {code}: {output}"]


def main() -> int:
    options, others = arguments()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    runs = [("under load", others)] * options.loaded
    runs += [
        (f"shuffled, seed {each}", [*others, "--no-loadscope-reorder", "--shuffle", str(each)])
        for each in range(seed, seed + options.shuffled)
    ]
    failed: dict[str, list[int]] = {}
    for number, (how, given) in enumerate(runs, 1):
        begin = time.monotonic()
        if how == "under load":
            with load():
                names = failures(number, given)
        else:
            names = failures(number, given)
        print(f"run {number} of {len(runs)}, {how}: {len(names)} failed, {time.monotonic() - begin:.0f} s", flush=True)
        for name in names:
            failed.setdefault(name, []).append(number)
    for name, numbers in sorted(failed.items()):
        print(f"{name} failed in {len(numbers)} of {len(runs)} runs: {', '.join(map(str, numbers))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
