"""A scalable topic under load, while its segments are split and merged, its namespace unloaded and its brokers killed.

Every subscription must receive each confirmed message at least once. Ordered consumers must receive the messages of
each key in the order of the calls. A message may come again, because its receipt or acknowledgement may be lost.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from pulsarium.client import Checkpoint, Client, InitialPosition, QueueConsumer, StreamConsumer, connect
from pulsarium.client.scalable.receiving import ScalableConsumer
from pulsarium.conformance.clients import Release
from pulsarium.conformance.protocol import Adapter, ClientError
from tests.foreign.admin import Admin, AdminError
from tests.foreign.broker_process import PULSARIUM, BrokerProcess
from yardsticks.servers import free_port

TOPIC = "topic://public/default/soak"
PATH = "/admin/v2/scalable/public/default/soak"
KEYS = 40
JAVA_KEYS = 4
MOST_SEGMENTS = 12
PATIENCE = 120.0  # seconds until every consumer has everything after the end of the load
SILENCE = 10.0  # seconds without a message, after which the Java stream consumer is opened again
RETENTION = {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}  # a checkpoint consumer prevents no deletion


@dataclass
class Account:
    """The messages that one subscription has received, and the violations of their order."""

    name: str
    is_ordered: bool
    seen: set[tuple[str, int]] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    again: int = 0

    def saw(self, key: str, number: int) -> None:
        """Note a message. A first delivery must follow the key's last first delivery."""
        if (key, number) in self.seen:
            self.again += 1
            return
        self.seen.add((key, number))
        expected = self.last.get(key, -1) + 1
        if self.is_ordered and number != expected:
            self.violations.append(f"{self.name}: {key} has {number} in place of {expected}")
        self.last[key] = max(number, self.last.get(key, -1))


@dataclass
class Outcome:
    """The figures of a run, and its violations."""

    sent: int = 0
    events: dict[str, int] = field(default_factory=dict)
    accounts: list[Account] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def count(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def __str__(self) -> str:
        events = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        seen = ", ".join(f"{one.name} saw {len(one.seen)} (+{one.again})" for one in self.accounts)
        return f"sent {self.sent}; {events}; {seen}; {len(self.violations)} violations"


class Brokers:
    """Two brokers of one cluster in a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._http_port = free_port(2), free_port(2)
        self._process = self._start()

    @property
    def service_url(self) -> str:
        return f"pulsar://127.0.0.1:{self._port},127.0.0.1:{self._port + 1}"

    @property
    def admins(self) -> list[Admin]:
        return [Admin(f"http://127.0.0.1:{port}") for port in (self._http_port, self._http_port + 1)]

    def kill(self) -> None:
        """Kill the brokers with SIGKILL, and start them again on their data and their ports."""
        self._process.kill()
        self._process = self._start()

    def stop(self) -> None:
        if self._process.running:
            self._process.stop()

    def _start(self) -> BrokerProcess:
        settings = {"scalableTopicAutoScaleEnabled": "false", "acknowledgmentAtBatchIndexLevelEnabled": "true"}
        options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        options += ["--brokers", "2", "--data", str(self._folder / "data")]
        return BrokerProcess(self._folder, options, self._port, self._http_port, command=PULSARIUM)


class Chaos:
    """Random changes of the topic and of its brokers."""

    def __init__(self, brokers: Brokers, outcome: Outcome, chance: random.Random, kill_every: float) -> None:
        self._brokers = brokers
        self._outcome = outcome
        self._chance = chance
        self._kill_every = kill_every

    async def run(self) -> None:
        next_kill = anyio.current_time() + self._kill_every
        while True:
            await anyio.sleep(self._chance.uniform(0.3, 1.5))
            if anyio.current_time() >= next_kill:
                next_kill = anyio.current_time() + self._kill_every
                await anyio.to_thread.run_sync(self._brokers.kill)
                self._outcome.count("kills")
                continue
            name, change = self._chance.choice([("splits", self._split), ("merges", self._merge), ("unloads", _unload)])
            for admin in self._brokers.admins:
                try:
                    if await anyio.to_thread.run_sync(change, admin):
                        self._outcome.count(name)
                    break
                except AdminError as error:  # the other broker may lead the topic
                    print(f"{name}: {error}", file=sys.stderr)
            else:
                self._outcome.count(f"refused {name}")

    def _split(self, admin: Admin) -> bool:
        active = _active(admin)
        if len(active) >= MOST_SEGMENTS:
            return False
        admin.call("POST", f"{PATH}/split/{self._chance.choice(active)['segmentId']}")
        return True

    def _merge(self, admin: Admin) -> bool:
        active = _active(admin)
        if len(active) < 2:
            return False
        first = self._chance.randrange(len(active) - 1)
        admin.call("POST", f"{PATH}/merge/{active[first]['segmentId']}/{active[first + 1]['segmentId']}")
        return True


def _unload(admin: Admin) -> bool:
    admin.call("PUT", "/admin/v2/namespaces/public/default/unload")
    return True


def _active(admin: Admin) -> list[dict[str, Any]]:
    segments = admin.call("GET", PATH)["segments"].values()
    return sorted((one for one in segments if one["active"]), key=lambda one: one["hashRange"]["start"])


class Java:
    """The V5 Java client, run by the kit's adapter, with a producer that has keys of its own and a stream consumer."""

    def __init__(self, command: Sequence[str], service_url: str, folder: Path, outcome: Outcome) -> None:
        self.account = Account("java stream", is_ordered=True)
        self.sent = 0
        self._outcome = outcome
        self._adapter = Adapter(command, folder / "java.log")
        self._do("open", **{"as": "client"}, url=service_url)
        self._do("producer", **{"as": "producer"}, client="client", topic=TOPIC)
        self._stream = {"subscription": "java", "name": "java"}
        self._do("stream", **{"as": "stream"}, client="client", topic=TOPIC, **self._stream)
        self._done = threading.Event()
        self._consumed, self._ended = threading.Event(), threading.Event()

    def _do(self, operation: str, **fields: Any) -> dict[str, Any]:
        return self._adapter.begin(operation, **fields).wait(PATIENCE)

    def produce(self) -> None:
        """Send one message after the other until `end`. Send a failed message again with another producer.

        A producer of 5.0.0-M1 never recovers from a lookup that timed out, such as while the broker is down.
        """
        number, producer = 0, "producer"
        while not self._done.is_set():
            message = {"key": f"j{number % JAVA_KEYS}", "value": str(number // JAVA_KEYS)}
            while True:
                try:
                    self._do("send", producer=producer, messages=[message])
                except ClientError as error:
                    self._outcome.count("failed sends of Java")
                    print(f"java: {error}", file=sys.stderr)
                    producer = self._again("producer", producer)
                    continue
                break
            number += 1
            self.sent += 1

    def _again(self, operation: str, handle: str, **fields: Any) -> str:
        """Close a producer or a consumer, and open another for the topic. Return the new handle."""
        name = f"{handle}+"
        while True:
            try:
                self._do("close", handle=handle)
                self._do(operation, **{"as": name}, client="client", topic=TOPIC, **fields)
                return name
            except ClientError as error:
                print(f"java: {error}", file=sys.stderr)
                self._consumed.wait(0.5)

    def consume(self) -> None:
        """Receive and acknowledge until `stop`. After a silence, open another consumer of the same name.

        A stream consumer of 5.0.0-M1 never repeats an acknowledgement. It drops redelivered messages that it has
        acknowledged. So a sealed segment whose last acknowledgement a killed broker lost is never drained.
        """
        consumer, heard = "stream", time.monotonic()
        while not self._consumed.is_set():
            try:
                messages = self._do("receive", consumer=consumer, count=100, seconds=1)["messages"]
                for message in messages:
                    self.account.saw(message["key"], int(message["value"]))
                if messages:
                    heard = time.monotonic()
                    self._do("acknowledge", consumer=consumer, message=messages[-1]["id"])
                elif time.monotonic() - heard > SILENCE:
                    self._outcome.count("reopened streams of Java")
                    consumer, heard = self._again("stream", consumer, **self._stream), time.monotonic()
            except ClientError as error:
                self._outcome.count("failed receives of Java")
                print(f"java: {error}", file=sys.stderr)
        self._ended.set()

    def end(self) -> None:
        """End the producer after its current message."""
        self._done.set()

    def stop(self) -> None:
        """End the consumer and the client."""
        self._consumed.set()
        self._ended.wait(PATIENCE)
        self._adapter.stop()


async def soak(folder: Path, seconds: float, seed: int, kill_every: float = 20.0, java: Sequence[str] = ()) -> Outcome:
    """Run the load for so many seconds, and return what was found. `java` starts the adapter of the V5 Java client."""
    brokers = await anyio.to_thread.run_sync(Brokers, folder)
    outcome = Outcome(accounts=[Account("queue", False), Account("stream", True), Account("checkpoint", True)])
    try:
        brokers.admins[0].call("POST", "/admin/v2/namespaces/public/default/retention", RETENTION)
        brokers.admins[0].call("PUT", f"{PATH}?numInitialSegments=2")
        guest = Java(java, brokers.service_url, folder, outcome) if java else None
        chaos = Chaos(brokers, outcome, random.Random(seed), kill_every)
        async with connect(brokers.service_url, max_backoff_interval=2.0, operation_timeout=60.0) as client:
            await _load(client, chaos, outcome, seconds, guest)
    finally:
        await anyio.to_thread.run_sync(brokers.stop)
    for account in outcome.accounts:
        outcome.violations += account.violations[:5]
        if missing := outcome.sent - len(account.seen):
            outcome.violations.append(f"{account.name}: {missing} messages are missing")
    return outcome


async def _load(client: Client, chaos: Chaos, outcome: Outcome, seconds: float, guest: Java | None) -> None:
    queue, stream, checkpoint = outcome.accounts
    earliest = InitialPosition.Earliest
    subscribe = partial(client.scalable.subscribe_stream, TOPIC, "stream", initial_position=earliest)
    async with (
        client.scalable.subscribe_queue(TOPIC, "queue", initial_position=earliest) as shared,
        client.scalable.create_checkpoint_consumer(TOPIC, Checkpoint.earliest) as reader,
        subscribe(consumer_name="a") as first,
        subscribe(consumer_name="b") as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_consume, shared, queue)
        tasks.start_soon(_consume, reader, checkpoint)
        tasks.start_soon(_consume, first, stream)
        tasks.start_soon(_consume, second, stream)
        if guest is not None:
            outcome.accounts.append(guest.account)
            tasks.start_soon(anyio.to_thread.run_sync, guest.consume)
        async with anyio.create_task_group() as producers:
            if guest is not None:
                producers.start_soon(anyio.to_thread.run_sync, guest.produce)
            async with anyio.create_task_group() as disturbed:
                disturbed.start_soon(chaos.run)
                await _produce(client, outcome, seconds)
                disturbed.cancel_scope.cancel()
            if guest is not None:
                guest.end()
        if guest is not None:
            outcome.sent += guest.sent
        await _until(lambda: all(len(one.seen) >= outcome.sent for one in outcome.accounts))
        if guest is not None:
            await anyio.to_thread.run_sync(guest.stop)
        tasks.cancel_scope.cancel()


async def _produce(client: Client, outcome: Outcome, seconds: float) -> None:
    async with client.scalable.create_producer(TOPIC) as producer:
        end = anyio.current_time() + seconds
        receipts: list[Any] = []
        while anyio.current_time() < end:
            key, number = f"k{len(receipts) % KEYS}", len(receipts) // KEYS
            receipts.append(await producer.submit(b"%d" % number, partition_key=key))
            outcome.sent += 1
            await anyio.sleep(0.002)
        with anyio.fail_after(PATIENCE):
            for receipt in receipts:
                await receipt.wait()


async def _consume(consumer: ScalableConsumer[bytes], account: Account) -> None:
    async for message in consumer:
        account.saw(message.partition_key(), int(message.data()))
        if isinstance(consumer, QueueConsumer):
            await consumer.acknowledge(message)
        elif isinstance(consumer, StreamConsumer):
            await consumer.acknowledge_cumulative(message)


async def _until(is_so: Callable[[], bool]) -> None:
    with anyio.move_on_after(PATIENCE):
        while not is_so():  # noqa: ASYNC110  # the accounts have no events to wait for
            await anyio.sleep(0.2)


def scalable(seconds: float, seed: int, folder: Path | None, *, java: bool) -> Outcome:
    """Run the load in a folder, which is kept, or in a temporary one. With `java`, the V5 Java client takes part."""
    with tempfile.TemporaryDirectory(prefix="pulsarium-soak-") as temporary:
        folder = folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        client = Release("java-v5")
        if java:
            client.prepare()
        adapter = client.command if java else ()
        return anyio.run(soak, folder, seconds, seed, 20.0, adapter, backend="trio")


def report(outcome: Outcome) -> int:
    """Print the outcome, and return the exit code."""
    print(outcome)
    for violation in outcome.violations:
        print(f"VIOLATION, {violation}")
    return 1 if outcome.violations else 0
