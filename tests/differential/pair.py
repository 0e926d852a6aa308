"""Both brokers side by side: one step on each, and what they said compared."""

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
"""Seconds that one broker has to say what the other has said."""

AGAIN = 0.1
"""Seconds between two looks at figures that differ."""

REFUSED = "status 400"

ANSWER = 200
"""Characters of a REST answer that are shown."""

WARM_UP = 20
"""Topics that are made before the first program: a broker that has just started takes its time for some."""


class Divergence(AssertionError):
    """The two brokers differ; the text says where."""


class Said(NamedTuple):
    """A command to send: its type, its fields (see Side.fields), its entry."""

    type: int
    fields: dict[str, Any]
    entry: bytes = b""


@dataclass
class Pair:
    """`portal` runs what waits for sockets; everything here is called from one other thread.

    In a `survey` a divergence does not fail its program: it is added to `surveyed`, and the rest of it does nothing, as
    after an answer that is of the moment.
    """

    portal: BlockingPortal
    ours: Side
    real: Side
    namespace: str
    survey: bool = False
    patience: float = PATIENCE  # for what one has said and the other has not
    tally: Tally = field(default_factory=Tally)
    surveyed: list[str] = field(default_factory=list)
    last: str = ""  # the last divergence, with all that was done before it
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _log: list[str] = field(default_factory=list)
    _over: bool = False
    _changes_nothing: bool = False  # the last call: it may be repeated

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.ours, self.real

    def prepare(self) -> None:
        for side in self.sides:
            side.rest("PUT", f"/admin/v2/namespaces/public/{self.namespace}", {"bundles": {"numBundles": 1}})
            for number in range(WARM_UP):
                side.rest("PUT", f"/admin/v2/persistent/public/{self.namespace}/warm-{number}")

    def close(self) -> None:
        """Free what the REST calls need; programs must have ended."""
        self._threads.shutdown()
        for side in self.sides:
            side.close()

    def begin(self) -> None:
        """A new program."""
        self.tally.programs += 1
        self._log, self._over = [], False
        for side in self.sides:
            side.begin()

    def end(self, links: Collection[int], paths: Collection[str]) -> None:
        """Nothing of a program stays: its connections, and what the REST API has at `paths`."""
        for number in sorted(links):
            for side in self.sides:
                if number in side.links:
                    self.portal.call(side.hang_up, number, PATIENCE)
        for path in paths:
            self._rest("DELETE", f"/admin/v2/{path}?force=true")

    def keep(self, consumers: Collection[tuple[int, int]]) -> None:
        """Forget who was told the end of its topic, but of these consumers: (connection, id)."""
        for side in self.sides:
            for number, link in side.links.items():
                link.told_end &= {consumer for at, consumer in consumers if at == number}

    # steps

    def dial(self, number: int) -> None:
        for side in self.sides if not self._over else ():
            link = self.portal.call(side.dial, number)
            self.portal.start_task_soon(link.read)

    def hang_up(self, number: int) -> Heard:
        """Closes a connection; what that does to the others."""
        if self._over:
            return Heard()
        self._log.append(f"{number} hangs up")
        for side in self.sides:
            self.portal.call(side.hang_up, number, PATIENCE)
        return self._heard(-1)

    def tell(self, number: int, frames: Sequence[Said]) -> Heard:
        """Sends all of `frames` in one write and compares what comes of it, on every connection."""
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
        """A REST call on both; its answers, and what it does to connections, are compared."""
        if self._over:
            return Heard()
        self.tally.calls[method] += 1
        self._log.append(f"{method} {path} {body or ''}")
        deadline = time.monotonic() + self.patience
        while lines := self._called(method, path, body):
            if not self._changes_nothing or time.monotonic() > deadline:
                self._diverged(lines)
                break
            time.sleep(AGAIN)  # figures may take their time, and a load that failed is remembered for a moment
        return self._heard(-1)

    # comparing

    def _called(self, method: str, path: str, body: object) -> list[str]:
        """Where the answers differ."""
        before = [copy.deepcopy(side.names) for side in self.sides]
        answers = self._rest(method, path, body)
        ours, real = (rest_facts(*answer, side.names) for side, answer in zip(self.sides, answers, strict=True))
        self._changes_nothing = method == "GET" or min(ours[0], real[0]) >= REFUSED
        if (names := needed(ours, real)) is None:
            self.ours.names, self.real.names = before  # it may be asked again
            return [*_those(ours, real, "ours"), *_those(real, ours, "real")]
        self.tally.tolerated.update(names)
        self._log.append(f"    {' '.join(ours)[:ANSWER]}")
        return []

    def _rest(self, method: str, path: str, body: object = None) -> list[tuple[int, Any]]:
        """A call on both at once."""
        calls = [self._threads.submit(side.rest, method, path, side.fields(body)) for side in self.sides]
        return [each.result() for each in calls]

    def _heard(self, number: int, frames: Sequence[Said] = ()) -> Heard:
        """What came of a step, the same from both; `number` is the connection that spoke, -1 for none."""
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
