"""`bin/pulsar-perf`: measure rates and latencies of produce, consume and read, with the options of Pulsar's program."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.cli.admin.values import CURSOR_POSITION
from pulsarium.cli.client.session import ClientRun, pace
from pulsarium.cli.grouped import together
from pulsarium.cli.terminal import guard

if TYPE_CHECKING:
    from pulsarium.client import Client, Message

    Job = Callable[[Client, "Tally"], Awaitable[None]]

_QUANTILES: Final = (
    ("med", 0.5),
    ("95pct", 0.95),
    ("99pct", 0.99),
    ("99.9pct", 0.999),
    ("99.99pct", 0.9999),
    ("Max", 1.0),
)
_KEYS: Final[Mapping[str, Callable[[int], str]]] = {
    "autoIncrement": str,
    "random": lambda _: str(random.getrandbits(31)),
}
_COMPRESSIONS: Final = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "show_default": True}


class Latencies:
    """Latencies in milliseconds, to the nearest hundredth."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._sum = 0.0

    def add(self, milliseconds: float) -> None:
        self._counts[round(milliseconds, 2)] += 1
        self._sum += milliseconds

    def __str__(self) -> str:
        """Return mean and quantiles, as pulsar-perf prints them."""
        total = self._counts.total()
        shown = [f"mean: {self._sum / max(total, 1):7.3f} ms"]
        return " - ".join([*shown, *(f"{name}: {self._quantile(share, total):7.3f}" for name, share in _QUANTILES)])

    def _quantile(self, share: float, total: int) -> float:
        left = math.ceil(share * total)
        for value in sorted(self._counts):
            left -= self._counts[value]
            if left <= 0:
                return value
        return 0.0


class Tally:
    """The messages of a run, and of the interval since the last report."""

    def __init__(self, what: str, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self.total = self._bytes = self._failed = 0
        self._most = most or math.inf
        self._what = what
        self._now = now
        self._begin = self._since = now()
        self._before = (0, 0, 0)
        self._recent, self._all = Latencies(), Latencies()

    def is_full(self) -> bool:
        """Return whether the run has all its messages."""
        return self.total + self._failed >= self._most

    def add(self, size: int, milliseconds: float) -> None:
        self.total += 1
        self._bytes += size
        self._recent.add(milliseconds)
        self._all.add(milliseconds)

    def fail(self) -> None:
        self._failed += 1

    def report(self) -> str:
        """Return a line about the interval since the last one, and begin the next."""
        seconds = max(self._now() - self._since, 1e-9)
        total, size, failed = self._before
        failures = f" --- failure {(self._failed - failed) / seconds:8.1f} msg/s" if self._what == "produced" else ""
        line = (
            f"Throughput {self._what}: {self.total:8} msg --- {_rates(self.total - total, self._bytes - size, seconds)}"
            f"{failures} --- Latency: {self._recent}"
        )
        self._before, self._since = (self.total, self._bytes, self._failed), self._now()
        self._recent = Latencies()
        return line

    def summary(self) -> list[str]:
        """Return the two lines about the whole run."""
        rates = _rates(self.total, self._bytes, max(self._now() - self._begin, 1e-9))
        records = "records sent" if self._what == "produced" else "records received"
        return [
            f"Aggregated throughput stats --- {self.total} {records} --- {rates}",
            f"Aggregated latency stats --- Latency: {self._all}",
        ]


def _rates(messages: int, size: int, seconds: float) -> str:
    return f"{messages / seconds:8.1f} msg/s --- {size * 8 / 1e6 / seconds:8.1f} Mbit/s"


def _refuse_transactions(_ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked:
        raise click.UsageError("--txn-enable: messages of transactions are not measured here; leave the option out")


def _say_no_histogram(_ctx: click.Context, param: click.Parameter, file: str | None) -> None:
    if file is not None:
        click.echo(f"{param.opts[0]} {file} has no effect here: the last lines have the latencies", err=True)


def _say_no_effect(_ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    if given is not None:
        click.echo(f"{param.opts[-1]} has no effect here: one thread with one connection does the work", err=True)


_transactions = together(
    click.option("-txn", "--txn-enable", hidden=True, is_flag=True, expose_value=False, callback=_refuse_transactions),
    *(
        click.option(*names, hidden=True, expose_value=False)
        for names in (("-tto", "--txn-timeout"), ("-nmt", "--numMessage-perTransaction"), ("-ntxn", "--number-txn"))
    ),
    click.option("-abort", hidden=True, is_flag=True, expose_value=False),
)
_common = together(
    click.argument("topics", nargs=-1, required=True, metavar="TOPIC..."),
    click.option("-u", "--service-url", metavar="URL", help="Connect to this broker."),
    click.option("--conf-file", "-cf", type=click.Path(path_type=Path, dir_okay=False), envvar="PULSAR_CLIENT_CONF"),
    click.option("--auth-plugin", "--auth_plugin", metavar="NAME", help="Authenticate with this plugin."),
    click.option("--auth-params", "--auth_params", metavar="PARAMS", help="Parameters of the plugin."),
    click.option(
        "--trust-cert-file", "-tls-trust-cert", metavar="FILE", help="Trust the authorities in this PEM file."
    ),
    click.option("-t", "--num-topics", "--num-topic", type=click.IntRange(1), default=1, help="Number of topics."),
    click.option("-m", "--num-messages", type=click.IntRange(0), default=0, help="End after N messages; 0: never."),
    click.option("-time", "--test-duration", type=click.IntRange(0), default=0, help="End after N seconds; 0: never."),
    click.option("-i", "--stats-interval-seconds", type=click.IntRange(1), default=10, help="Seconds between reports."),
    click.option("-c", "--max-connections", hidden=True, expose_value=False, callback=_say_no_effect),
    click.option("-ioThreads", "--num-io-threads", hidden=True, expose_value=False, callback=_say_no_effect),
    click.option("--histogram-file", hidden=True, expose_value=False, callback=_say_no_histogram),
    _transactions,
)


class _Perf(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(f"pulsar-perf {args[0]} does not exist; use {', '.join(self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Perf, context_settings=_CONTEXT)
def perf() -> None:
    """Measure rates and latencies of a broker.

    The client is Pulsarium's, in Python: its limits are lower than those of Pulsar's client in Java.
    """


@perf.command(context_settings=_CONTEXT)
@_common
@click.option("-r", "--rate", type=click.FloatRange(0), default=100.0, help="Messages a second; 0: no limit.")
@click.option("-s", "--size", type=click.IntRange(0), default=1024, help="Bytes of a message.")
@click.option(
    "-f", "--payload-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Send this file."
)
@click.option("-n", "--num-producers", type=click.IntRange(1), default=1, help="Producers of each topic.")
@click.option("-o", "--max-outstanding", type=click.IntRange(1), default=1000, help="Messages without a receipt.")
@click.option("-z", "--compression", type=click.Choice(_COMPRESSIONS), default="NONE", help="Compress the messages.")
@click.option("-b", "--batch-time-window", type=click.FloatRange(0), default=1.0, help="Batch for N milliseconds.")
@click.option("-bm", "--batch-max-messages", type=click.IntRange(1), default=1000, help="Messages of a batch.")
@click.option("-bb", "--batch-max-bytes", type=click.IntRange(1), default=4 << 20, help="Bytes of a batch.")
@click.option("-bd", "--disable-batching", is_flag=True, help="Send each message in its own entry.")
@click.option(
    "-mk", "--message-key-generation-mode", type=click.Choice([*filter(None, _KEYS)]), help="Give each message a key."
)
@click.option("-threads", "--num-test-threads", hidden=True, expose_value=False, callback=_say_no_effect)
def produce(**asked: Any) -> None:
    """Publish messages of the same contents."""
    from pulsarium.client import CompressionType

    content = asked["payload_file"].read_bytes() if asked["payload_file"] else bytes(asked["size"])
    options: dict[str, Any] = {
        "batching_enabled": not asked["disable_batching"],
        "batching_max_messages": asked["batch_max_messages"],
        "batching_max_allowed_size_in_bytes": asked["batch_max_bytes"],
        "batching_max_publish_delay": asked["batch_time_window"] / 1000,
        "max_pending_messages": asked["max_outstanding"],
        "compression_type": {each.name.upper(): each for each in CompressionType}[asked["compression"]],
    }
    topics = [topic for topic in _topics(asked) for _ in range(asked["num_producers"])]
    key = _KEYS.get(asked["message_key_generation_mode"], lambda _: None)

    async def job(client: Client, tally: Tally) -> None:
        sent = 0

        def settled(begin: float, message_id: object, error: object) -> None:
            if error is None:
                tally.add(len(content), (time.monotonic() - begin) * 1000)
            else:
                tally.fail()

        async def publish(producer: Any) -> None:
            nonlocal sent
            wait = pace(asked["rate"] / len(topics))
            while not asked["num_messages"] or sent < asked["num_messages"]:
                number, sent = sent, sent + 1
                await wait()
                begin = time.monotonic()
                (await producer.submit(content, partition_key=key(number))).then(partial(settled, begin))
            await producer.flush()

        async with AsyncExitStack() as stack:
            producers = [await stack.enter_async_context(client.create_producer(each, **options)) for each in topics]
            async with anyio.create_task_group() as tasks:
                for producer in producers:
                    tasks.start_soon(publish, producer)

    import anyio

    _measure("produced", asked, job)


@perf.command(context_settings=_CONTEXT)
@_common
@click.option("-ss", "--subscriptions", default="sub", help="The subscriptions, with commas between them.")
@click.option("-s", "--subscriber-name", metavar="NAME", help="The older name of --subscriptions.")
@click.option("-ns", "--num-subscriptions", type=click.IntRange(1), default=1, help="Subscriptions of each topic.")
@click.option(
    *("-st", "--subscription-type"),
    type=click.Choice(["Exclusive", "Shared", "Failover", "Key_Shared"]),
    default="Exclusive",
    help="Share the subscription in this way.",
)
@click.option(
    *("-sp", "--subscription-position"),
    type=click.Choice(["Latest", "Earliest"]),
    default="Latest",
    help="Start a new subscription here.",
)
@click.option("-n", "--num-consumers", type=click.IntRange(1), default=1, help="Consumers of each subscription.")
@click.option("-q", "--receiver-queue-size", type=click.IntRange(1), default=1000, help="Messages that wait.")
@click.option("-r", "--rate", type=click.FloatRange(0), default=0.0, help="Messages a second; 0: no limit.")
def consume(**asked: Any) -> None:
    """Receive messages of subscriptions and acknowledge them."""
    from pulsarium.client import ConsumerType, InitialPosition

    named = (asked["subscriber_name"] or asked["subscriptions"]).split(",")
    count = asked["num_subscriptions"]
    names = named if count <= len(named) else [f"{named[0]}-{index}" for index in range(count)]
    options: dict[str, Any] = {
        "consumer_type": ConsumerType[asked["subscription_type"].replace("_", "")],
        "initial_position": InitialPosition[asked["subscription_position"]],
        "receiver_queue_size": asked["receiver_queue_size"],
    }

    async def job(client: Client, tally: Tally) -> None:
        async def receive(consumer: Any) -> None:
            await _until_full(tally, consumer.receive, asked["rate"] / len(consumers), consumer.acknowledge)
            tasks.cancel_scope.cancel()

        async with AsyncExitStack() as stack:
            consumers = [
                await stack.enter_async_context(client.subscribe(topic, name, **options))
                for topic in _topics(asked)
                for name in names
                for _ in range(asked["num_consumers"])
            ]
            async with anyio.create_task_group() as tasks:
                for consumer in consumers:
                    tasks.start_soon(receive, consumer)

    import anyio

    _measure("received", asked, job)


@perf.command(context_settings=_CONTEXT)
@_common
@click.option(
    *("-sm", "--start-message-id"),
    type=CURSOR_POSITION,
    default="earliest",
    help="Start behind this message: latest, earliest or ledgerId:entryId.",
)
@click.option("-q", "--receiver-queue-size", type=click.IntRange(1), default=1000, help="Messages that wait.")
@click.option("-r", "--rate", type=click.FloatRange(0), default=0.0, help="Messages a second; 0: no limit.")
def read(**asked: Any) -> None:
    """Read messages without a subscription."""
    from pulsarium.client import MessageId

    start = MessageId(asked["start_message_id"].ledger_id, asked["start_message_id"].entry_id)
    options = {"receiver_queue_size": asked["receiver_queue_size"]}

    async def job(client: Client, tally: Tally) -> None:
        async def receive(reader: Any) -> None:
            await _until_full(tally, reader.read_next, asked["rate"] / len(readers))
            tasks.cancel_scope.cancel()

        async with AsyncExitStack() as stack:
            readers = [
                await stack.enter_async_context(client.create_reader(topic, start, **options))
                for topic in _topics(asked)
            ]
            async with anyio.create_task_group() as tasks:
                for reader in readers:
                    tasks.start_soon(receive, reader)

    import anyio

    _measure("read", asked, job)


def _topics(asked: dict[str, Any]) -> list[str]:
    """Return the topics of a run: those that are named, or one with numbers behind its name."""
    topics: tuple[str, ...] = asked["topics"]
    count = asked["num_topics"]
    if len(topics) > 1 and count not in (1, len(topics)):
        raise click.UsageError(f"--num-topics {count}: {len(topics)} topics are named; leave the option out")
    return list(topics) if count == 1 or len(topics) > 1 else [f"{topics[0]}-{index}" for index in range(count)]


async def _until_full(
    tally: Tally,
    receive: Callable[[], Awaitable[Message]],
    rate: float,
    acknowledge: Callable[[Message], Awaitable[None]] | None = None,
) -> None:
    wait = pace(rate)
    while True:
        await wait()
        message = await receive()
        if tally.is_full():  # by another consumer
            return
        tally.add(len(message.data()), max(time.time() * 1000 - message.publish_timestamp(), 0.0))
        if acknowledge is not None:
            await acknowledge(message)
        if tally.is_full():
            return


def _measure(what: str, asked: dict[str, Any], job: Job) -> None:
    """Run the job, with a report at each interval and a summary at the end."""
    session = ClientRun(
        url=asked["service_url"],
        config=asked["conf_file"],
        auth_plugin=asked["auth_plugin"],
        auth_params=asked["auth_params"],
        tls_trust_cert_path=asked["trust_cert_file"],
    )
    tally: Tally | None = None

    async def measured(client: Client) -> None:
        import anyio

        nonlocal tally
        tally = Tally(what, asked["num_messages"])
        with anyio.move_on_after(asked["test_duration"] or None):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, tally, asked["stats_interval_seconds"])
                await job(client, tally)
                tasks.cancel_scope.cancel()

    try:
        session.run(measured)
    finally:
        for line in [] if tally is None else tally.summary():
            click.echo(line)


async def _report(tally: Tally, seconds: float) -> None:
    import anyio

    while True:
        await anyio.sleep(seconds)
        click.echo(tally.report())


def main(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-perf of the folder `home`."""
    from pulsarium.cli.pulsar.main import take_client_conf

    guard()
    take_client_conf(home)
    perf.main(arguments, prog_name="pulsar-perf")
