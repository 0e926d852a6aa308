"""Run rounds: start a broker on the data that the last one left, verify everything, and kill the broker under load."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio
import trio.testing

from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.client import Client
from pulsarium.client.admin.errors import AdminConnectError, Conflict
from pulsarium.client.errors import AlreadyClosed, ConnectError, Timeout
from pulsarium.rest.policies import DEDUPLICATION

from . import once, settings, topics
from .log import Log
from .once import Once
from .process import START_SECONDS, Broker, Manner, broker_on
from .scalable import Scalable
from .settings import Settings
from .stage import Actor, Stage
from .stream import Stream
from .table import Table
from .topics import Lives
from .transactions import Transactions

NAMESPACES = (topics.NAMESPACE, settings.NAMESPACE, once.NAMESPACE)
LOST = (ConnectError, Timeout, AlreadyClosed, AdminConnectError)
"""Errors that clients raise when the broker was killed."""
END_SECONDS = 30.0  # from the error of a client until the end of the broker is heard of
VERIFY_SECONDS = 60.0
LOAD = 250  # the most confirmations before the kill
LOAD_SECONDS = 30.0  # the longest time until the kill
POINT_LOAD, POINT_SECONDS = 10_000, 60.0  # the same for a broker that has to kill itself at a persist point
THOROUGH = 25  # rounds between two thorough checks, which read all kept topics and check the database file

#: For each persist point, the greatest occurrence at which a broker kills itself.
OCCURRENCES = {
    PersistPoint.BEGUN: 60,
    PersistPoint.WRITTEN: 60,
    PersistPoint.COMMITTED: 60,
    PersistPoint.ACKNOWLEDGED: 60,
    PersistPoint.APPLYING: 8,
    PersistPoint.DELETION: 8,
    PersistPoint.MOVING: 3,
    PersistPoint.REMOVING: 5,
}

RARE = (PersistPoint.MOVING, PersistPoint.REMOVING)
"""Persist points that a broker may not reach without load."""


class Failure(AssertionError):
    """The broker lost data. The text names the seed and the round that show it again."""


@dataclass(frozen=True)
class Round:
    """A life of the broker, and the moment of its end."""

    name: str
    moment: str
    """Moment of the kill: "start", "verify", "load", or "end" for the last round, which checks everything."""
    manner: Manner


def random_rounds(seed: int, count: int) -> Iterator[Round]:
    """Yield rounds that kill the broker at random moments, most of them under load."""
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        moment = chance.choices(("load", "verify", "start"), (80, 10, 10))[0]
        apply_bytes, log_bytes = chance.choice((1 << 16, 1 << 20, 8 << 20)), chance.choice((1 << 14, 1 << 17, 1 << 26))
        yield Round(f"random {number}", moment, Manner(apply_bytes=apply_bytes, log_bytes=log_bytes))


def point_rounds(seed: int, occurrences: int) -> Iterator[Round]:
    """Yield rounds that kill the broker at every persist point, counted under load or from the broker's start."""
    chance = random.Random(f"{seed}-points")
    for number in range(occurrences):
        for point, most in OCCURRENCES.items():
            under_load = number % 3 != 2 or point in RARE
            occurrence = chance.randrange(1, most + 1) if number else 1
            manner = Manner(point.name, occurrence, armed=not under_load, apply_bytes=1 << 16, log_bytes=1 << 14)
            yield Round(f"{point.name} {occurrence} {'under load' if under_load else 'from start'}", "load", manner)


class Crash:
    """Runner of all rounds on one data directory."""

    def __init__(self, broker: Broker, seed: int) -> None:
        self._broker = broker
        self._seed = seed
        self._number = 0
        self._verifying = 0.2  # seconds that the last verification took
        self._starting = 0.1  # seconds that the last start took
        self._missed = False  # whether the broker of this round did not reach its persist point
        self.killed_at: dict[str, int] = {}
        """Number of kills for each moment and each persist point."""
        self.once = Once()
        self._lives = lives = Lives()
        others = (Log(lives), Stream(), Table(lives), Transactions(lives), Settings(lives), Scalable())
        self._actors: list[Actor] = [self.once, *others]

    async def prepare(self) -> None:
        """Run the first life of the broker, which creates the namespaces for all others."""
        await self._start(Manner())
        async with Stage(self._broker, random.Random(0), 0, set()).client() as client:
            for namespace in NAMESPACES:
                try:
                    await client.admin.namespaces.create_namespace(namespace)
                except Conflict:
                    raise AssertionError("the directory has been used before") from None
            await client.admin.namespace_policies[DEDUPLICATION].set(once.NAMESPACE, True)
        await self._kill()

    async def live(self, life: Round) -> None:
        """Run one life of the broker up to its kill."""
        self._number += 1
        chance = random.Random(f"{self._seed}-{life.name}-{self._number}")
        if life.moment == "start":
            await self._broker.start(life.manner)
            await self._broker.forked.wait()
            await trio.sleep(chance.random() * self._starting)
            await self._kill()
        else:
            await self._start(life.manner)
            await self._live(life, chance)
        self._broker.check_end()
        name = life.manner.point or life.moment
        if self._missed:
            name, self._missed = f"not at {name}", False
        self.killed_at[name] = self.killed_at.get(name, 0) + 1

    async def _start(self, manner: Manner) -> None:
        await self._broker.start(manner)
        begin = trio.current_time()
        with trio.move_on_after(START_SECONDS) as limit:
            await _first_of(self._broker.ready, self._broker.ended)
            self._starting = trio.current_time() - begin
        assert not limit.cancelled_caught, f"the broker did not start in {START_SECONDS:g} s"

    async def _kill(self) -> None:
        self._broker.kill()
        await self._broker.ended.wait()

    async def _live(self, life: Round, chance: random.Random) -> None:
        stage = Stage(self._broker, chance, self._number, set().union(*(actor.parts for actor in self._actors)))
        async with trio.open_nursery() as nursery:
            for actor in self._actors:
                nursery.start_soon(self._guarded, actor.live, stage)
            nursery.start_soon(self._guarded, partial(self._end, life), stage)
            await self._broker.ended.wait()
            await trio.testing.wait_all_tasks_blocked()  # clients receive what the broker sent before its end
            nursery.cancel_scope.cancel()

    async def _guarded(self, use: Callable[[Stage], Awaitable[None]], stage: Stage) -> None:
        """Run a task of a round, and ignore its connection errors if the broker is killed or has killed itself."""
        try:
            await use(stage)
        except* LOST:
            killed_before = self._broker.killed
            with trio.move_on_after(END_SECONDS):
                await self._broker.ended.wait()
            if not self._broker.ended.is_set() or (self._broker.killed and not killed_before):
                raise

    async def _end(self, life: Round, stage: Stage) -> None:
        """Kill the broker at the moment that the round names, unless the broker kills itself before."""
        begin = trio.current_time()
        if life.moment == "verify":
            await trio.sleep(stage.chance.random() * self._verifying)
        else:
            with trio.move_on_after(VERIFY_SECONDS) as limit:
                await stage.verified.wait()
            assert not limit.cancelled_caught, f"not verified in {VERIFY_SECONDS:g} s: {sorted(stage.pending)}"
            async with stage.client() as client:
                await self._look(client, thorough=life.moment == "end" or self._number % THOROUGH == 0)
            self._verifying = trio.current_time() - begin
            if life.moment != "end":
                await self._load(life, stage)
        self._broker.kill()

    async def _load(self, life: Round, stage: Stage) -> None:
        """Let the actors make load until enough of it is confirmed, or until the time is over."""
        self._broker.arm()
        if life.manner.point is None:
            with trio.move_on_after(LOAD_SECONDS):
                await stage.load(stage.chance.randrange(LOAD))
            await stage.pause(0.003)
        else:
            with trio.move_on_after(POINT_SECONDS):
                await stage.load(POINT_LOAD)
            self._missed = True

    async def _look(self, client: Client, *, thorough: bool) -> None:
        """Check that the broker can report on every topic. With `thorough`, check kept topics and the database too."""
        for namespace in (*NAMESPACES, "pulsar/system"):
            for topic in await client.admin.topics.get_list(namespace, include_system_topic=True):
                await client.admin.topics.get_internal_stats(topic)
        if thorough:
            await self._lives.check_kept(client)
            await trio.to_thread.run_sync(check_file, self._broker.data / DATABASE_NAME)


def check_file(path: Path) -> None:
    """Check the integrity of a database with SQLite's own check."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        problems = connection.execute("PRAGMA integrity_check").fetchall()
    assert problems == [("ok",)], f"{path}: {problems}"


async def _first_of(*events: trio.Event) -> None:
    async with trio.open_nursery() as nursery:

        async def wait(event: trio.Event) -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        for event in events:
            nursery.start_soon(wait, event)


@asynccontextmanager
async def crash_on(folder: Path, seed: int, durability: str) -> AsyncIterator[Crash]:
    """Yield a runner that is prepared for rounds, in an empty folder."""
    async with broker_on(folder, durability) as broker, trio.open_nursery() as nursery:
        crash = Crash(broker, seed)
        await crash.prepare()
        nursery.start_soon(crash.once.run, broker)
        yield crash
        nursery.cancel_scope.cancel()


async def run(
    folder: Path,
    seed: int,
    rounds: Iterable[Round],
    *,
    durability: str = "os",
    tell: Callable[[int, Crash], None] = lambda done, crash: None,
) -> dict[str, int]:
    """Run all rounds and a last one that checks everything, and return the number of kills at each moment.

    Raise `Failure` if anything was lost. The folder still holds the broker's data then.
    """
    name = "before the first round"
    try:
        async with crash_on(folder, seed, durability) as crash:
            for done, each in enumerate((*rounds, Round("the last", "end", Manner()))):
                name = f"round {done} ({each.name}, killed at {each.moment})"
                await crash.live(each)
                tell(done + 1, crash)
            return crash.killed_at
    except BaseExceptionGroup as group:
        found = [each for each in leaves(group) if not isinstance(each, trio.Cancelled)]
        if not found or not all(isinstance(each, Exception) for each in found):
            raise
        said = "\n".join(f"{type(each).__name__}: {each}" for each in found)
        raise Failure(f"seed {seed}, {name}: {said}") from group


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of a group and of all groups inside it."""
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from leaves(each)
        else:
            yield each
