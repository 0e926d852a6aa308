"""The command scripts/fuzz: look for inputs that break something."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from yardsticks.fuzz.corpus import findings_of, inputs_of, write_inputs
from yardsticks.fuzz.coverage import fewest
from yardsticks.fuzz.oracle import ROOT
from yardsticks.fuzz.target import Target
from yardsticks.fuzz.targets import TARGETS

ABOUT = """\
Fuzzes what takes bytes from strangers, guided by coverage (atheris, that is libFuzzer; Linux, Python 3.11 to 3.13):

  frames     bytes to frames to commands, in any pieces
  commands   what clients write to a whole broker, on several connections
  entries    entries that are published, consumed, compacted, peeked over REST, read by our client
  batches    entries through all that takes them apart, without a broker
  rest       REST requests on every route
  websocket  paths and frames of producers, consumers and readers over WebSocket

  scripts/fuzz                            a minute of each
  scripts/fuzz --target rest --seconds 600
  scripts/fuzz --minimize                 the inputs that reach most become the corpus, where they add something

An input that fails goes to yardsticks/fuzz/corpus/TARGET.findings.txt, where the everyday suite runs it. What libFuzzer
keeps goes to build/fuzz/TARGET, and from there to the corpus with --minimize.
Exit code 0: nothing was found. 1: something was.
"""
WORK = ROOT / "build" / "fuzz"
LIBRARY = WORK / "lib"
SPARE = 120  # seconds that a run may take beyond --seconds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("fuzz", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be given several times")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="for each target (default: 60)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of libFuzzer (default: another each time)")
    parser.add_argument("--minimize", action="store_true", help="instead: merge what was kept into the corpus")
    return parser.parse_args()


def install() -> None:
    """Install atheris in a folder of its own, because atheris is large and does not support every platform."""
    if not (LIBRARY / "atheris").is_dir():
        wanted = ["-r", str(Path(__file__).parent / "requirements.txt")]
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "--no-deps", "--target", str(LIBRARY), *wanted], check=True)


def fuzz(target: Target, seconds: int, seed: int) -> int:
    """Run the fuzzer for a target in a process of its own, and return the number of new findings.

    A process that fails counts as a finding.
    """
    folder = WORK / target.name
    before = len(findings_of(target))
    print(f"{target.name}: {seconds} s", flush=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "yardsticks.fuzz.engine",
        target.name,
        str(seconds),
        str(folder),
        f"-seed={seed}",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(LIBRARY)])}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, timeout=seconds + SPARE, stderr=subprocess.PIPE, text=True, check=False
    )
    said = done.stderr.splitlines()
    print("\n".join(said[-2:] if done.returncode == 0 else said[-40:]), flush=True)
    return len(findings_of(target)) - before + (done.returncode != 0)


def minimize(target: Target) -> None:
    """Replace the corpus by the few inputs that reach all that the corpus, the seeds and libFuzzer's inputs reach."""
    kept = [path.read_bytes() for path in sorted((WORK / target.name / "kept").glob("*"))]
    before = inputs_of(target)
    after = fewest(target, [*before, *target.seeds(), *(data for data in kept if len(data) <= target.largest)])
    write_inputs(target, after)
    print(f"{target.name}: {len(before)} inputs were there, {len(kept)} were kept by libFuzzer, {len(after)} stay")


def main() -> int:
    options = arguments()
    targets = [TARGETS[name] for name in options.target or TARGETS]
    if options.minimize:
        for target in targets:
            minimize(target)
        return 0
    install()
    found = sum(fuzz(target, options.seconds, options.seed) for target in targets)
    print(f"{found} findings that are new" if found else "nothing was found that is new")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
