"""scripts/conformance: replays the recorded scenarios of a real broker and compares the answers."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from yardsticks.recorder.releases import RELEASES

from . import report
from .brokers import DEFAULT, BrokerError, as_is, foreign, pulsarium
from .catalogue import DIFFERENCES, Catalogue, CatalogueError, Scenario, load, undocumented
from .replay import NewBroker, Replay, Verdict
from .rest.command import main as rest

ABOUT = """\
Replays the scenarios that were recorded on a real broker (tests/transcripts) against fresh `pulsarium serve`
processes that have the recorded broker's settings, and compares what was said, frame by frame. Times, ledger ids,
ports, generated names and the wording of errors are masked. Connections are served in the order in which they send.
What differs is played once again, alone, and the last line names such scenarios: a busy machine may not grant a broker
the time that a scenario gives it.

  scripts/conformance                   the scenarios that must be equal now (tests/transcripts/scenarios.toml)
  scripts/conformance 37 057-059 seek   by number, range or a part of the name; -v shows the differences
  scripts/conformance --all             every scenario of the profile; only the required ones decide the exit code
  scripts/conformance --against pulsar://HOST:PORT,http://HOST:PORT 17    a broker that runs already
  scripts/conformance --profile stock   the scenarios recorded with a broker's stock switches and 3 s of keep-alive
  scripts/conformance --release 5.0    the scenarios of scalable topics, recorded on 5.0.0-M1, with a steered clock
  scripts/conformance --default         the default profile (pip) in the place of pulsar-4.2, with its own list
  scripts/conformance rest              the recorded calls of the admin API; see rest --help

Exit code 0: every scenario that was named or is required is equal, or differs in the answers that scenarios.toml lists,
all their fields included, for a reason of docs/differences.md. 1: one does not. 2: the request or the list is wrong.
"""


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("conformance", description=ABOUT, formatter_class=layout)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="number, range (025-033) or part of a name")
    parser.add_argument("--issue", type=int, metavar="N", help="the scenarios required from issue N on")
    parser.add_argument("--all", action="store_true", help="every scenario of the profile")
    parser.add_argument("--release", choices=RELEASES, default="4.2", help="which recorded release (default: 4.2)")
    parser.add_argument("--profile", default="lab", help="which recorded broker (default: lab)")
    parser.add_argument("--default", action="store_true", help="play with the default profile, not as pulsar-4.2")
    parser.add_argument("--against", metavar="PULSAR_URL,HTTP_URL", help="a broker that runs already")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="brokers at a time (default: 4, with --against 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show each difference")
    parser.add_argument("--texts", action="store_true", help="compare the wording of errors too")
    parser.add_argument("--strict", action="store_true", help="let every scenario played decide the exit code")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the recordings and the brokers' logs here")
    parser.add_argument("--list", action="store_true", help="name the scenarios and play none")
    options = parser.parse_args()
    profiles = RELEASES[options.release].configs
    if options.profile not in profiles:
        parser.error(f"--profile {options.profile}: release {options.release} has {', '.join(profiles)}")
    return options


def chosen(catalogue: Catalogue, options: argparse.Namespace) -> tuple[list[Scenario], frozenset[int]]:
    """Return the scenarios to play, and the numbers of those that decide the exit code."""
    profile = catalogue.of_profile(options.profile)
    everything = frozenset(s.number for s in profile)
    required = catalogue.all_required()
    if options.issue is not None:
        if options.issue not in catalogue.required:
            raise CatalogueError(f"no scenarios are listed for issue {options.issue}")
        required = catalogue.required[options.issue]
    if options.scenarios:
        named = catalogue.named(options.scenarios, options.profile)
        return named, frozenset(s.number for s in named)
    if options.all or not required & everything:
        return profile, everything if options.strict else required
    return [s for s in profile if s.number in required], required


def play(catalogue: Catalogue, options: argparse.Namespace, out: Path) -> int:
    scenarios, counting = chosen(catalogue, options)
    if options.list:
        for scenario in scenarios:
            print(f"{scenario.name:40} {scenario.seconds:5.1f} s  {scenario.purpose}")
        return 0
    release = RELEASES[options.release]
    behaviour = DEFAULT if options.default else release.behavior
    known = catalogue.known(behaviour)
    new_broker: NewBroker
    if options.against:
        running = foreign(options.against)
        new_broker, jobs = (lambda _: as_is(running)), options.jobs or 1
    else:
        new_broker, jobs = (
            partial(pulsarium, options.profile, out, release=release, behaviour=behaviour),
            options.jobs or 4,
        )

    def tell(verdict: Verdict) -> None:
        print(report.line(verdict, known), flush=True)
        # Trouble of a recorder or a broker is always shown. Differences are long, so --verbose shows them.
        if said := report.details(verdict) if options.verbose else verdict.trouble:
            print("    " + said.replace("\n", "\n    "), flush=True)

    def good(verdict: Verdict) -> bool:
        # A scenario that does not decide the exit code is not played again.
        return verdict.scenario.number not in counting or report.good(verdict, known)

    begin = time.monotonic()
    verdicts = Replay(out, options.texts, release).run(scenarios, new_broker, jobs, tell, good)
    failed = report.failures(verdicts, known, counting)
    print(report.summary(verdicts, failed, time.monotonic() - begin))
    return 1 if failed else 0


def main() -> int:
    if sys.argv[1:2] == ["rest"]:
        return rest(sys.argv[2:])
    options = arguments()
    try:
        catalogue = load(RELEASES[options.release].folder)
        if silent := undocumented(catalogue.differs, DIFFERENCES.read_text() if DIFFERENCES.exists() else ""):
            raise CatalogueError(f"docs/differences.md does not give scenarios.toml's reason for: {', '.join(silent)}")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            return play(catalogue, options, options.out)
        with tempfile.TemporaryDirectory(prefix="pulsarium-conformance-") as folder:
            return play(catalogue, options, Path(folder))
    except (CatalogueError, BrokerError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
