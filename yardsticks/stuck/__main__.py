"""scripts/stuck: brings topics of a real broker into states, and records what its admin API says of each."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import trio

from pulsarium.client import AdminError, connect_admin
from pulsarium.rest.why.reader import WhyReader
from yardsticks.stuck.healthy import HEALTHY
from yardsticks.stuck.stage import SETTLE, State, stage
from yardsticks.stuck.states import ALONE, STUCK

ABOUT = """\
Brings topics of a real broker into states in which the next message does not come, and into states that are well, and
records what the admin API says of each. tests/rest/why reads the recordings: each stuck state must be explained by its
reason, and no healthy one may raise an alarm.

  scripts/stuck --broker pulsar://localhost:6650 --admin-url http://localhost:8080 4.2.4
  scripts/stuck ... 4.2.4 a-hash-that-drains idle-shared      these states only

The broker needs transactions, topic policies and statsUpdateFrequencyInSecs=5. These states need a broker for
themselves, with a setting, and are recorded only when they are named:
"""
RECORDED: Final = Path(__file__).resolve().parents[2] / "tests" / "rest" / "why" / "recordings"


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("stuck", description=ABOUT + _alone(), formatter_class=layout)
    parser.add_argument("release", help="the version of the broker, which names the folder of the recordings")
    parser.add_argument("states", nargs="*", metavar="STATE", help="the states to record (default: all)")
    parser.add_argument("--broker", default="pulsar://localhost:6650", help="URL of the binary protocol")
    parser.add_argument("--admin-url", default="http://localhost:8080", help="URL of the admin API")
    parser.add_argument("--at-once", type=int, default=20, help="states at once; fewer on a busy machine (default: 20)")
    return parser.parse_args()


def _alone() -> str:
    return "".join(f"  {name}: {setting}\n" for name, setting in ALONE.items())


async def record(name: str, state: State, reason: str | None, options: argparse.Namespace) -> None:
    """Bring a topic into a state, leave it alone, and write what the broker says of it."""
    urls = options.broker, options.admin_url
    topic = f"persistent://public/default/{name}"
    async with connect_admin(options.admin_url) as admin, trio.open_nursery() as nursery:
        with suppress(AdminError):
            await admin.topics.delete(topic, force=True)
        with suppress(AdminError):
            await admin.topics.delete_partitioned_topic(topic, force=True)
        nursery.start_soon(_kept, state, name, urls)
        await trio.sleep(SETTLE)
        found = await WhyReader(admin.topics._exchange).read(topic)
        nursery.cancel_scope.cancel()
    content: dict[str, Any] = {"reason": reason, "facts": [_without_empty(asdict(each)) for each in found]}
    path = RECORDED / options.release / ("healthy" if reason is None else "stuck") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n")
    print(f"{name}: {reason or 'healthy'}", flush=True)


async def _kept(state: State, name: str, urls: tuple[str, str]) -> None:
    async with stage(name, urls) as on:
        await state(on)
        await trio.sleep_forever()


def _without_empty(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value not in ({}, None)}


async def run(options: argparse.Namespace) -> int:
    states: dict[str, tuple[State, str | None]] = {name: (state, reason) for name, (reason, state) in STUCK.items()}
    states |= {name: (state, None) for name, state in HEALTHY.items()}
    failed = list[str]()
    limit = trio.CapacityLimiter(options.at_once)

    async def one(name: str) -> None:
        async with limit:
            try:
                await record(name, *states[name], options)
            except Exception as error:
                failed.append(name)
                print(f"{name}: failed: {error!r} {getattr(error, 'exceptions', '')}", file=sys.stderr, flush=True)

    async with trio.open_nursery() as nursery:
        for name in options.states or states.keys() - ALONE.keys():
            nursery.start_soon(one, name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(trio.run(run, arguments()))
