"""scripts/mutate: measure whether the everyday tests notice mutants."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.architecture.source import FOLDERS
from tests.mutants.mutant import Mutant, MutantError
from tests.mutants.rows import MUTANTS

ROOT: Final = Path(__file__).resolve().parents[2]
LEAST: Final = 58  # so many mutants must be caught
ABOUT: Final = f"""\
Breaks the broker and the client on purpose, one small change at a time, and runs the everyday tests: at least
{LEAST} of {len(MUTANTS)} changes must make a test fail. tests/mutants/rows.py lists them.

Each change is made in a copy of the checkout. The tests that should notice run first, and only where they pass the rest
of the everyday tests of behavior. Before that they run once without any change, and must pass.

  scripts/mutate                          all of them, in as many copies as there are cores
  scripts/mutate --only ttl-is-late       one; may be given several times, then each must be caught
  scripts/mutate --list                   what there is

Exit code 0: enough were caught. 1: too few were, or a change no longer applies.
"""
REST: Final = (*FOLDERS, "replay", "hostile", "pressure", "foreign/python", "foreign/test_async_*.py")
LEFT_OUT: Final = (".git", ".venv*", "build", "__pycache__", ".hypothesis", "*.egg-info")
PYTEST: Final = ("-m", "pytest", "-q", "-x", "--hypothesis-seed=0")
PASSED, FAILED = 0, 1  # other exit codes of pytest mean that the tests could not run


class Outcome(NamedTuple):
    """The result of a mutant: `by` is the test that failed, or "". `problem` says why the mutant could not be tried."""

    mutant: Mutant
    by: str = ""
    problem: str = ""


class Tree:
    """A copy of the checkout, with an environment that imports the copied sources and the checkout's packages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        environment = root / ".venv"
        subprocess.run([sys.executable, "-P", "-m", "venv", "--without-pip", str(environment)], check=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
        (packages / "tree.pth").write_text(f"{root / 'src'}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        self._python = environment / "bin" / "python"
        self._changes = 0

    def change(self, file: str, text: str) -> None:
        """Write a source file. Byte code is compared by time in seconds, so each change gets its own second."""
        self._changes += 1
        path, now = self.root / file, int(time.time()) + self._changes
        path.write_text(text, encoding="utf-8")
        os.utime(path, (now, now))

    def test(self, paths: Sequence[str]) -> tuple[int, str]:
        """Run tests up to the first failure. Return the exit code, and the failed test or the last lines of output."""
        environment = {key: value for key, value in os.environ.items() if key not in ("CI", "PYTHONPATH")}
        command = [str(self._python), "-P", *PYTEST, *paths]
        run = subprocess.run(
            command,
            check=False,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
        return run.returncode, failed[1] if failed else "\n".join((run.stdout + run.stderr).splitlines()[-5:])

    def rest_of(self, mutant: Mutant) -> list[str]:
        """Return the everyday tests of behavior, without the tests that run first."""
        tests = self.root / "tests"
        found = [str(path.relative_to(self.root)) for each in REST for path in sorted(tests.glob(each))]
        return [*found, *(f"--deselect={path}" for path in mutant.first)]

    def try_out(self, mutant: Mutant) -> Outcome:
        """Apply a mutant, run its tests, and restore the file."""
        before = (self.root / mutant.file).read_text(encoding="utf-8")
        self.change(mutant.file, mutant.applied(self.root))
        try:
            for paths in (mutant.first, self.rest_of(mutant)):
                status, said = self.test(paths)
                if status == FAILED:
                    return Outcome(mutant, by=said)
                if status != PASSED:
                    return Outcome(mutant, problem=f"pytest could not run (exit code {status}): {said}")
            return Outcome(mutant)
        finally:
            self.change(mutant.file, before)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("mutate", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--only", choices=names, action="append", metavar="NAME", help="only this one")
    parser.add_argument("--list", action="store_true", help="print names, files and what each breaks")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, metavar="N", help=f"copies at work (default: {cores})")
    return parser.parse_args()


def check_unchanged(tree: Tree, mutants: Iterable[Mutant], jobs: int) -> None:
    """Raise `MutantError` when a test that should notice a mutant fails without a mutant."""
    paths = sorted({path for mutant in mutants for path in mutant.first})
    status, said = tree.test(["-n", str(jobs), "--dist", "loadfile", *paths])
    if status != PASSED:
        raise MutantError(f"without any change a test fails; mend that first: {said}")


def try_all(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """Try all mutants, `jobs` at a time, and print and return the outcomes."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder, ThreadPoolExecutor(jobs) as pool:
        free: SimpleQueue[Tree] = SimpleQueue()
        trees = [Tree(Path(folder) / str(number)) for number in range(min(jobs, len(mutants)))]
        print("the first tests without any change ...", flush=True)
        check_unchanged(trees[0], mutants, len(trees))
        for tree in trees:
            free.put(tree)

        def one(mutant: Mutant) -> None:
            tree, began = free.get(), time.monotonic()
            try:
                outcome = tree.try_out(mutant)
            except MutantError as error:
                outcome = Outcome(mutant, problem=str(error))
            finally:
                free.put(tree)
            outcomes.append(outcome)
            what = outcome.problem or (f"caught by {outcome.by}" if outcome.by else "SURVIVED")
            seconds = time.monotonic() - began
            print(f"{len(outcomes):2}/{len(mutants)} {mutant.name}: {what} ({seconds:.0f} s)", flush=True)

        for each in [pool.submit(one, mutant) for mutant in mutants]:
            each.result()
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a text with the number of caught mutants, and the mutants that were not caught."""
    left = [each for each in outcomes if not each.by]
    lines = [f"{len(outcomes) - len(left)} of {len(outcomes)} mutants were caught"]
    for outcome in left:
        lines += ["", f"{outcome.mutant.name} ({outcome.mutant.file})", f"  {outcome.mutant.breaks}"]
        lines.append(f"  {outcome.problem or 'No everyday test noticed: write one.'}")
    return "\n".join(lines)


def is_enough(outcomes: Sequence[Outcome]) -> bool:
    """Return whether enough were caught, and each could be tried; of a few that were named, all must be."""
    caught = sum(bool(each.by) for each in outcomes)
    return caught >= min(LEAST, len(outcomes)) and not any(each.problem for each in outcomes)


def main() -> int:
    options = arguments()
    mutants = [mutant for mutant in MUTANTS if options.only is None or mutant.name in options.only]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}\n  {mutant.file}: {mutant.breaks}")
        return 0
    try:
        outcomes = try_all(mutants, max(options.jobs, 1))
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{summary(outcomes)}")
    return 0 if is_enough(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
