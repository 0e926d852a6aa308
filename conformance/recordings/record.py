"""Record golden protocol transcripts of a Pulsar broker: python -P -m pulsarium.conformance.recordings.record --help.

Each scenario writes OUT/NNN-SLUG.jsonl. Nothing is normalised. One line a frame: {"t": ms, "conn", "dir": "c2b"|"b2c",
"type", "cmd", "metadata", "payload"/"batch", "raw"}. Bytes that are not printable ASCII are written {"hex": "..."}.
mask.py makes of several recordings what a broker does not repeat.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from pulsarium.conformance.recordings import scalable, scenarios
from pulsarium.conformance.recordings.recorder import Recorder, Scenario, Target
from pulsarium.conformance.recordings.releases import RELEASES, Release


def scenarios_of(release: Release) -> Sequence[Scenario]:
    """Return the scenarios that are recorded of a release."""
    every = scalable.ALL if release.scalable else scenarios.ALL
    return [scenario for scenario in every if release.has(scenario.number)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Record golden protocol transcripts of a Pulsar broker.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--broker", default="127.0.0.1:6650")
    parser.add_argument("--admin", default="http://127.0.0.1:8080")
    parser.add_argument("--profile", default="lab")
    parser.add_argument("--config", default="{}", help="JSON put into the first line")
    parser.add_argument("--secret", help="HS256 key of the token authentication of this broker")
    parser.add_argument("--list", action="store_true", help="name the scenarios and play none")
    parser.add_argument(
        "--in-order", action="store_true", help="let a broker on this machine read all of one connection before another"
    )
    parser.add_argument(
        "--steered", action="store_true", help="move the clock of a broker with a lab in place of waiting"
    )
    parser.add_argument("--release", choices=RELEASES, default="4.2.4", help="whose scenarios to play (default: 4.2.4)")
    parser.add_argument("only", nargs="*", help="parts of the scenarios' names")
    options = parser.parse_args()
    chosen = scenarios_of(RELEASES[options.release])
    if options.list:
        for scenario in chosen:
            print(scenario.name, scenario.profile, scenario.purpose)
        return
    if options.out is None:
        parser.error("--out is needed: the folder for the recordings")
    options.out.mkdir(parents=True, exist_ok=True)
    host, _, port = options.broker.rpartition(":")
    target = Target(
        (host, int(port)),
        options.admin,
        options.secret,
        options.in_order,
        options.steered,
        json.loads(options.config),
    )
    for scenario in chosen:
        if scenario.profile != options.profile:
            continue
        if options.only and not any(part in scenario.name for part in options.only):
            continue
        begin = time.monotonic()
        recorder = Recorder(scenario, target)
        how = "ok" if recorder.run(options.out) else "DRIVER ERROR"
        print(f"{scenario.name} {how} {len(recorder.lines)} lines {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
