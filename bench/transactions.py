"""Run scripts/bench transactions: the number of transactions a second, and the cost of open ones for others."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from bench.accounting import cpu_seconds
from bench.brokers import Broker, Launch, pulsarium_command, running
from bench.large import acknowledge
from bench.raw_driver import (
    CONSUMER_ID,
    PERMITS,
    PRODUCER_ID,
    Connection,
    RawDriverError,
    flow,
    look_up,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from pulsarium.proto import entry
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata

ABOUT = """\
Measures transactions on the wire, with a bare socket in place of a client.

First it measures transactions a second. Each transaction publishes one message, or ten, to a topic, and acknowledges a
message of another topic; both are registered with its coordinator before, as clients do. Transactions run one after
the other, which shows the time that a client waits, and a hundred at a time. CPU is the broker's time per transaction,
of all its threads.

Then it measures the cost of open transactions, each of which has a message in the topic: the broker's CPU for a plain
message that is published to this topic, and for one that is delivered and acknowledged there. (That message is older
than the transactions, because a message behind an open transaction waits.) The same is measured on another topic, and
on this topic after all transactions were aborted, when their messages are skipped. The first row has no transaction.

  scripts/bench transactions
  scripts/bench transactions --open 1 100 --messages 1000           a short look
  scripts/bench transactions --on pulsar://HOST:PORT,http://HOST:PORT,PID       measure a running broker
"""

TC_ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
SETTINGS = ("--set", "transactionCoordinatorEnabled=true")
TTL_MS = 3_600_000
PAYLOAD = b"x" * 1024
GROUP = 100


class Txn(NamedTuple):
    """The id of a transaction."""

    most: int
    least: int


class Position(NamedTuple):
    """The position of an entry."""

    ledger: int
    entry: int


class Wire(Connection):
    """A connection to a broker and its coordinator 0."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.service_url)
        self._requests = 1000  # above the request ids of producers and consumers
        look_up(self, TC_ASSIGN)
        self.ask([self.request(BaseCommand.TC_CLIENT_CONNECT_REQUEST, "tcClientConnectRequest", tc_id=0)])

    def request(self, kind: BaseCommand.Type, body: str, **fields: object) -> BaseCommand:
        command = BaseCommand(type=kind)
        self._requests += 1
        fields["request_id"] = self._requests
        getattr(command, body).MergeFrom(type(getattr(command, body))(**fields))
        return command

    def ask(self, commands: Iterable[BaseCommand], entries: Sequence[bytes] = ()) -> list[BaseCommand]:
        """Send all requests at once, those with an entry first, and return the answers in the order of arrival."""
        plain = list(commands)
        self.socket.sendall(b"".join([*entries, *(frame(command.SerializeToString()) for command in plain)]))
        found: list[BaseCommand] = []
        for command in self.commands():
            answer = _answer(command)
            if answer is not None:
                found.append(answer)
                if len(found) == len(plain) + len(entries):
                    break
        return found

    def begin(self, count: int) -> list[Txn]:
        made = (self.request(BaseCommand.NEW_TXN, "newTxn", tc_id=0, txn_ttl_millis=TTL_MS) for _ in range(count))
        answers = (answer.newTxnResponse for answer in self.ask(made))
        return [Txn(answer.txnid_most_bits, answer.txnid_least_bits) for answer in answers]

    def fill(self, txns: Sequence[Txn], out: str, messages: int, into: str = "", ids: Sequence[Position] = ()) -> None:
        """Publish `messages` messages to `out` in each transaction, and acknowledge one of `ids` on `into`."""
        told = []
        for txn in txns:
            told.append(
                self.request(BaseCommand.ADD_PARTITION_TO_TXN, "addPartitionToTxn", **_of(txn), partitions=[out])
            )
            if ids:
                there = [{"topic": into, "subscription": "bench"}]
                told.append(
                    self.request(
                        BaseCommand.ADD_SUBSCRIPTION_TO_TXN, "addSubscriptionToTxn", **_of(txn), subscription=there
                    )
                )
        self.ask(told)
        acks = [
            self.request(
                BaseCommand.ACK,
                "ack",
                **_of(txn),
                consumer_id=CONSUMER_ID,
                ack_type=0,
                message_id=[{"ledgerId": where.ledger, "entryId": where.entry}],
            )
            for txn, where in zip(txns, ids, strict=False)
        ]
        self.ask(acks, [_send(txn) for txn in txns for _ in range(messages)])

    def end(self, txns: Iterable[Txn], *, commit: bool) -> None:
        action = 0 if commit else 1
        self.ask(self.request(BaseCommand.END_TXN, "endTxn", **_of(txn), txn_action=action) for txn in txns)


def _of(txn: Txn) -> dict[str, int]:
    return {"txnid_most_bits": txn.most, "txnid_least_bits": txn.least}


def _send(txn: Txn) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = PRODUCER_ID
    command.send.sequence_id = 0
    command.send.txnid_most_bits, command.send.txnid_least_bits = txn
    metadata = MessageMetadata(producer_name="bench", publish_time=1, sequence_id=0)
    metadata.txnid_most_bits, metadata.txnid_least_bits = txn
    return frame(command.SerializeToString(), entry.build(metadata, PAYLOAD))


_ANSWERS = {
    BaseCommand.TC_CLIENT_CONNECT_RESPONSE: "tcClientConnectResponse",
    BaseCommand.NEW_TXN_RESPONSE: "newTxnResponse",
    BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE: "addPartitionToTxnResponse",
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: "addSubscriptionToTxnResponse",
    BaseCommand.END_TXN_RESPONSE: "endTxnResponse",
    BaseCommand.ACK_RESPONSE: "ackResponse",
    BaseCommand.SEND_RECEIPT: "send_receipt",
}


def _answer(command: BaseCommand) -> BaseCommand | None:
    """Return a copy of an answer, or None for any other command. Raise `RawDriverError` for an error."""
    name = _ANSWERS.get(command.type)
    if name is None:
        if command.type in (BaseCommand.ERROR, BaseCommand.SEND_ERROR):
            raise RawDriverError(str(command))
        return None
    body = getattr(command, name)
    if "error" in body.DESCRIPTOR.fields_by_name and body.HasField("error"):
        raise RawDriverError(str(command))
    copy = BaseCommand()
    copy.CopyFrom(command)
    return copy


def receive(connection: Connection, count: int) -> list[Position]:
    """Return the positions of the next messages. All permits are used up."""
    found: list[Position] = []
    granted = min(PERMITS, count)
    connection.send(flow(CONSUMER_ID, granted))
    for command in connection.commands():
        if command.type == BaseCommand.MESSAGE:
            found.append(Position(command.message.message_id.ledgerId, command.message.message_id.entryId))
            if len(found) == count:
                break
            if len(found) == granted - PERMITS // 2 and (more := min(PERMITS // 2, count - granted)):
                connection.send(flow(CONSUMER_ID, more))
                granted += more
    return found


def publish(broker: Broker, topic: str, count: int) -> None:
    connection = Connection(broker.service_url)
    open_producer(connection, topic)
    send_all(connection, send_segments(count, len(PAYLOAD)))
    connection.socket.close()


@dataclass
class Spent:
    """Cost of a block: `seconds`, and `cpu` seconds of the broker."""

    seconds: float = 0.0
    cpu: float = 0.0


@contextmanager
def metered(broker: Broker) -> Iterator[Spent]:
    spent = Spent()
    cpu, begin = cpu_seconds(broker.pid), time.perf_counter()
    yield spent
    spent.seconds, spent.cpu = time.perf_counter() - begin, cpu_seconds(broker.pid) - cpu


def rate(broker: Broker, topic: Callable[[str], str], count: int, messages: int, group: int) -> Spent:
    """Measure `count` transactions of so many messages and an acknowledgement, `group` at a time."""
    out, into = topic("out"), topic("in")
    wire = Wire(broker)
    open_producer(wire, out)
    subscribe(wire, into)
    publish(broker, into, count)
    ids = receive(wire, count)
    with metered(broker) as spent:
        for start in range(0, count, group):
            txns = wire.begin(len(ids[start : start + group]))
            wire.fill(txns, out, messages, into, ids[start : start + group])
            wire.end(txns, commit=True)
    wire.socket.close()
    return spent


COSTS = (
    "open",
    "publish here",
    "deliver here",
    "publish elsewhere",
    "deliver elsewhere",
    "deliver, all aborted",
    "begin with a message",
    "abort",
)
Costs = tuple[float, ...]
"""Microseconds of each of these, after the number of open transactions."""


def visibility(broker: Broker, topic: Callable[[str], str], count: int, many: int) -> Costs:
    same, other = topic("same"), topic("other")
    wire = Wire(broker)
    open_producer(wire, same)
    consumers = {name: Connection(broker.service_url) for name in (same, other)}
    for name, consumer in consumers.items():
        subscribe(consumer, name)
    publish(broker, same, count)
    opened: list[Txn] = []

    def published(name: str) -> float:
        with metered(broker) as spent:
            publish(broker, name, count)
        return spent.cpu / count * 1e6

    def delivered(name: str) -> float:
        with metered(broker) as spent:
            acknowledge(consumers[name], receive(consumers[name], count))
        return spent.cpu / count * 1e6

    with metered(broker) as begun:
        for start in range(0, many, GROUP):
            txns = wire.begin(min(GROUP, many - start))
            wire.fill(txns, same, 1)
            opened += txns
    costs = [published(same), delivered(same), published(other), delivered(other)]
    with metered(broker) as ended:
        for start in range(0, many, GROUP):
            wire.end(opened[start : start + GROUP], commit=False)
    costs.append(delivered(same))
    costs += [begun.cpu / max(1, many) * 1e6, ended.cpu / max(1, many) * 1e6]
    for connection in (wire, *consumers.values()):
        connection.socket.close()
    return tuple(costs)


def measure(broker: Broker, options: argparse.Namespace) -> None:
    names = (f"persistent://public/default/bench-{os.getpid()}-{number}" for number in range(1 << 20))

    def topics() -> Callable[[str], str]:
        prefix = next(names)
        return lambda name: f"{prefix}-{name}"

    rate(broker, topics(), GROUP, 1, GROUP)  # warm-up
    print("| transactions of | at a time | /s | broker CPU us |\n|---|---|---|---|")
    for messages in (1, 10):
        for group, count in ((1, options.transactions // 10), (GROUP, options.transactions)):
            spent = rate(broker, topics(), count, messages, group)
            title = f"{messages} message{'s' * (messages > 1)} + 1 ack"
            print(f"| {title} | {group} | {count / spent.seconds:,.0f} | {spent.cpu / count * 1e6:.0f} |", flush=True)
    print(f"\nbroker CPU us a message\n| {' | '.join(COSTS)} |\n{'|---' * len(COSTS)}|")
    for many in [0, *options.open]:
        costs = visibility(broker, topics(), options.messages, many)
        print(f"| {many:,} | " + " | ".join(f"{cost:.1f}" for cost in costs) + " |", flush=True)


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench transactions", description=ABOUT, formatter_class=layout)
    parser.add_argument(
        "--transactions", type=int, default=5000, metavar="N", help="transactions for the rate (default: 5000)"
    )
    parser.add_argument(
        "--messages", type=int, default=50_000, metavar="N", help="messages for the cost (default: 50000)"
    )
    parser.add_argument(
        "--open", type=int, nargs="*", default=[1, 100, 10_000], metavar="N", help="numbers of open transactions"
    )
    parser.add_argument("--on", metavar="BROKER", help="measure a running broker, and not a new one: URL,URL,PID")
    options = parser.parse_args(given)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    if options.on:
        measure(running(options.on), options)
        return 0
    launch = Launch([*pulsarium_command(), *SETTINGS])
    try:
        measure(launch.broker, options)
    finally:
        launch.stop()
    return 0
