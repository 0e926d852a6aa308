"""scripts/conformance: replays the recorded scenarios of a real broker against ours, and compares the answers."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from pulsarium.conformance.recordings.catalogue import CatalogueError, named
from pulsarium.conformance.recordings.releases import RELEASES
from pulsarium.conformance.recordings.replay import BrokerError, Replay, Verdict

from . import report
from .brokers import DEFAULT, pulsarium
from .expectations import DIFFERENCES, Expectations, load, undocumented
from .rest.command import main as rest

ABOUT = """\
Replays the recordings of a real broker (conformance/recordings) against fresh `pulsarium serve` processes that have the
recorded broker's settings, and compares what was said, as `pulsarium conformance broker` does with a broker that runs
already. What differs must be listed with its reason (yardsticks/replay/expected). What differs otherwise is played once
again, alone, and the last line names such scenarios: a busy machine may not grant a broker the time that a scenario
gives it.

  scripts/conformance                   all scenarios of the profile lab
  scripts/conformance 37 057-059 seek   by number, range or a part of the name; -v shows the differences
  scripts/conformance --profile stock   the scenarios recorded with a broker's stock switches and 3 s of keep-alive
  scripts/conformance --release 5.0.0-M1-scalable    the scenarios of scalable topics, with a steered clock
  scripts/conformance --default         the default profile (pip) in the place of pulsar-4.2, with its own list
  scripts/conformance rest              the recorded calls of the admin API; see rest --help

Exit code 0: every scenario is equal, or differs in the answers that are listed, all their fields included, for a reason
of docs/differences.md. 1: one does not. 2: the request or the list is wrong.
"""


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("conformance", description=ABOUT, formatter_class=layout)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="number, range (025-033) or part of a name")
    parser.add_argument("--release", choices=RELEASES, default="4.2.4", help="whose recordings (default: 4.2.4)")
    parser.add_argument("--profile", default="lab", help="which recorded broker (default: lab)")
    parser.add_argument("--default", action="store_true", help="play with the default profile, not as pulsar-4.2")
    parser.add_argument("-j", "--jobs", type=int, default=4, metavar="N", help="brokers at a time (default: 4)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show each difference")
    parser.add_argument("--texts", action="store_true", help="compare the wording of errors too")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the recordings and the brokers' logs here")
    options = parser.parse_args()
    profiles = RELEASES[options.release].configs
    if options.profile not in profiles:
        parser.error(f"--profile {options.profile}: release {options.release} has {', '.join(profiles)}")
    return options


def play(expected: Expectations, options: argparse.Namespace, out: Path) -> int:
    scenarios = named(expected.of_profile(options.profile), options.scenarios)
    release = RELEASES[options.release]
    behaviour = DEFAULT if options.default else release.behavior
    known = expected.known(behaviour)

    def tell(verdict: Verdict) -> None:
        print(report.line(verdict, known), flush=True)
        # Trouble of a recorder or a broker is always shown. Differences are long, so --verbose shows them.
        if said := report.details(verdict) if options.verbose else verdict.trouble:
            print("    " + said.replace("\n", "\n    "), flush=True)

    begin = time.monotonic()
    new_broker = partial(pulsarium, options.profile, out, release=release, behaviour=behaviour)
    replay = Replay(out, options.texts, release)
    verdicts = replay.run(scenarios, new_broker, options.jobs, tell, lambda verdict: report.good(verdict, known))
    failed = report.failures(verdicts, known)
    print(report.summary(verdicts, failed, time.monotonic() - begin))
    return 1 if failed else 0


def main() -> int:
    if sys.argv[1:2] == ["rest"]:
        return rest(sys.argv[2:])
    options = arguments()
    try:
        expected = load(RELEASES[options.release])
        if silent := undocumented(expected.differs, DIFFERENCES.read_text()):
            raise CatalogueError(f"docs/differences.md does not give the listed reason for: {', '.join(silent)}")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            return play(expected, options, options.out)
        with tempfile.TemporaryDirectory(prefix="pulsarium-conformance-") as folder:
            return play(expected, options, Path(folder))
    except (CatalogueError, BrokerError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
