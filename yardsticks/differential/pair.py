"""Run each step on both brokers, and compare the answers."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import trio
from anyio.from_thread import BlockingPortal

from pulsarium.proto.commands import COMMANDS
from tests.broker.wire import Type, frame_of

from .normal import rest_facts
from .sides import Heard, Side
from .tally import Tally
from .tolerances import moment, needed

PATIENCE = 5.0
"""Time that one broker has to send the frames that the other broker has sent, in seconds."""

AGAIN = 0.1
"""Time before a REST call whose answers differ is repeated, in seconds."""

REFUSED = "status 400"

ANSWER = 200
"""Number of characters of a REST answer that are shown."""

WARM_UP = 20
"""Topics that are created before the first program, because a broker that has just started is slow."""


class Divergence(AssertionError):
    """The two brokers differ. The text of the error shows the differences."""


class Said(NamedTuple):
    """A command to send, with its type, its fields (see Side.fields) and its entry."""

    type: int
    fields: dict[str, Any]
    entry: bytes = b""


@dataclass
class Pair:
    """The two brokers that a program runs on.

    The thread of `portal` waits for sockets. One other thread calls all methods. In a `survey`, a divergence does not
    fail its program. The divergence is added to `surveyed`, and the other steps of the program do nothing. The steps
    after a `Moment` (see tolerances.py) do nothing either.
    """

    portal: BlockingPortal
    ours: Side
    real: Side
    namespace: str
    survey: bool = False
    patience: float = PATIENCE  # seconds to wait for frames that only one broker has sent
    tally: Tally = field(default_factory=Tally)
    surveyed: list[str] = field(default_factory=list)
    last: str = ""  # the last divergence, with all steps before it
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _log: list[str] = field(default_factory=list)
    _over: bool = False
    _changes_nothing: bool = False  # whether the last REST call may be repeated

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.ours, self.real

    def prepare(self) -> None:
        for side in self.sides:
            side.rest("PUT", f"/admin/v2/namespaces/public/{self.namespace}", {"bundles": {"numBundles": 1}})
            for number in range(WARM_UP):
                side.rest("PUT", f"/admin/v2/persistent/public/{self.namespace}/warm-{number}")

    def close(self) -> None:
        """Stop the threads of REST calls, and close both sides. Programs must have ended."""
        self._threads.shutdown()
        for side in self.sides:
            side.close()

    def begin(self) -> None:
        """Begin a new program."""
        self.tally.programs += 1
        self._log, self._over = [], False
        for side in self.sides:
            side.begin()

    def end(self, links: Collection[int], paths: Collection[str]) -> None:
        """Close the connections of a program, and delete its resources at the `paths` of the REST API."""
        for number in sorted(links):
            for side in self.sides:
                if number in side.links:
                    self.portal.call(side.hang_up, number, PATIENCE)
        for path in paths:
            self._rest("DELETE", f"/admin/v2/{path}?force=true")

    def keep(self, consumers: Collection[tuple[int, int]]) -> None:
        """Forget which consumers received REACHED_END_OF_TOPIC, except for these. A consumer is (connection, id)."""
        for side in self.sides:
            for number, link in side.links.items():
                link.told_end &= {consumer for at, consumer in consumers if at == number}

    # steps

    def dial(self, number: int) -> None:
        for side in self.sides if not self._over else ():
            link = self.portal.call(side.dial, number)
            self.portal.start_task_soon(link.read)

    def hang_up(self, number: int) -> Heard:
        """Close a connection on both brokers, and compare the frames on all other connections."""
        if self._over:
            return Heard()
        self._log.append(f"{number} hangs up")
        for side in self.sides:
            self.portal.call(side.hang_up, number, PATIENCE)
        return self._heard(-1)

    def tell(self, number: int, frames: Sequence[Said]) -> Heard:
        """Send all of `frames` in one write, and compare the frames that come back on every connection."""
        if self._over:
            return Heard()
        for each in frames:
            self.tally.command(each.type, each.fields)
            self._log.append(f"{number} {COMMANDS[each.type].name} {each.fields}")
        return self._heard(number, frames)

    async def _send(self, number: int, frames: Sequence[Said]) -> None:
        for side in self.sides:
            link = side.links[number]
            link.pongs += sum(each.type == Type.PING for each in frames)
            await link.write(b"".join(frame_of(each.type, each.entry, **side.fields(each.fields)) for each in frames))

    def call(self, method: str, path: str, body: object = None) -> Heard:
        """Make a REST call on both brokers. Compare the answers, and the frames on all connections."""
        if self._over:
            return Heard()
        self.tally.calls[method] += 1
        self._log.append(f"{method} {path} {body or ''}")
        deadline = time.monotonic() + self.patience
        while lines := self._called(method, path, body):
            if not self._changes_nothing or time.monotonic() > deadline:
                self._diverged(lines)
                break
            time.sleep(AGAIN)  # figures may come late, and a broker remembers a failed load for a moment
        return self._heard(-1)

    # comparing

    def _called(self, method: str, path: str, body: object) -> list[str]:
        """Make a REST call on both brokers, and return the differences."""
        before = [copy.deepcopy(side.names) for side in self.sides]
        answers = self._rest(method, path, body)
        ours, real = (rest_facts(*answer, side.names) for side, answer in zip(self.sides, answers, strict=True))
        self._changes_nothing = method == "GET" or min(ours[0], real[0]) >= REFUSED
        if (names := needed(ours, real)) is None:
            self.ours.names, self.real.names = before  # the call may be repeated
            return [*_those(ours, real, "ours"), *_those(real, ours, "real")]
        self.tally.tolerated.update(names)
        self._log.append(f"    {' '.join(ours)[:ANSWER]}")
        return []

    def _rest(self, method: str, path: str, body: object = None) -> list[tuple[int, Any]]:
        """Make a call on both brokers at once, and return both answers."""
        calls = [self._threads.submit(side.rest, method, path, side.fields(body)) for side in self.sides]
        return [each.result() for each in calls]

    def _heard(self, number: int, frames: Sequence[Said] = ()) -> Heard:
        """Compare the frames after a step, and return them. `number` is the connection that sent, or -1."""
        self.portal.call(self._collect, number, frames)
        ours, real = self.ours.heard(), self.real.heard()
        self._log += [f"    {stream}: {fact}" for stream, facts in ours.said.items() for fact in facts]
        if lines := self._differences(ours, real):
            reading = any(each.type == Type.SUBSCRIBE and not each.fields["durable"] for each in frames)
            both = ([fact for facts in side.said.values() for fact in facts] for side in (ours, real))
            if reading and (name := moment(*both)):
                self.tally.tolerated[name] += 1
                self._over = True
            else:
                self._diverged(lines)
        for each in ours.ended:
            for side in self.sides:
                self.portal.call(side.hang_up, each, PATIENCE)
        return ours

    async def _collect(self, number: int, frames: Sequence[Said]) -> None:
        if frames:
            await self._send(number, frames)
        async with trio.open_nursery() as nursery:
            for side in self.sides:
                nursery.start_soon(side.settle, number, PATIENCE)
        for each, link in self.ours.links.items():
            other = self.real.links[each]
            await other.catch_up(link, self.patience)
            await link.catch_up(other, self.patience)

    def _differences(self, ours: Heard, real: Heard) -> list[str]:
        lines = []
        for stream in sorted({*ours.said, *real.said}):
            a, b = ours.said.get(stream, []), real.said.get(stream, [])
            if (names := needed(a, b)) is not None:
                self.tally.tolerated.update(names)
            else:
                lines += [f"{stream}:", *(f"   ours {each}" for each in a), *(f"   real {each}" for each in b)]
        if ours.ended != real.ended:
            lines.append(f"closed by ours {ours.ended}, by the real one {real.ended}")
        return lines

    def _diverged(self, lines: list[str]) -> None:
        self.last = "\n".join(["", *self._log, *lines])
        if not self.survey:
            raise Divergence("\n".join(["", *lines]))
        self._over = True
        self.surveyed.append(self.last)


def _those(facts: list[str], without: list[str], whose: str) -> list[str]:
    return [f"   {whose} {fact}" for fact in facts if fact not in without]
