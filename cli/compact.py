"""`pulsarium compact`: compact topics of a data folder while no broker uses it."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.grouped import GroupedCommand, options_of
from pulsarium.cli.logs import LEVELS
from pulsarium.cli.refusal import CommandRefusal, RequestRefused, RunRefused
from pulsarium.cli.terminal import progress

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Broker
    from pulsarium.broker.config import ServeOptions
    from pulsarium.broker.model.compaction.compactor import Compactable, Compactor, Steps, Writer
    from pulsarium.broker.model.compaction.raw import RawMessage, RawReader
    from pulsarium.broker.model.topic.persistent import PersistentTopic
    from pulsarium.proto.topic_name import TopicName

data = options_of("Data")
engine = options_of("Engine")
output = options_of("Output")

POLL_SECONDS = 0.1
STEPS = 1000  # in the progress bar


@click.command(cls=GroupedCommand, short_help="Compact topics of a data folder whose broker is stopped.")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@data(
    "--data",
    type=click.Path(file_okay=False, readable=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="The data folder.",
)
@data(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the broker.conf of the folder's broker.",
)
@data("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set one broker.conf key. May be repeated.")
@engine(
    "--engine",
    "name",
    metavar="NAME",
    help="Use this engine: two-phase (in this process), spark, or an installed one.  [default: two-phase; spark with "
    "--master, --work-dir or --format]",
)
@engine(
    "--master", metavar="URL", help="Run on this Spark: local[*], local[4] or spark://host:7077.  [default: local[*]]"
)
@engine(
    "--work-dir",
    metavar="DIR",
    help="Spool the topic for Spark to DIR, which all workers must see.  [default: the system's folder for "
    "temporary files]",
)
@engine(
    "--format",
    metavar="NAME",
    help="Write compacted batches in this format: pulsar, values, or module:object. A topic keeps another format than "
    "pulsar.  [default: pulsar]",
)
@engine("--option", "options", multiple=True, metavar="KEY=VALUE", help="Set another option of the engine.")
@output(
    "--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="Log this level and above."
)
def compact(topics: tuple[str, ...], log_level: str, **asked: Any) -> None:
    """Compact topics of a data folder whose broker is stopped, as Pulsar's compact-topic does.

    Consumers that read compacted then get only the latest message of each key. The topic itself keeps all messages. For
    a partitioned topic, all partitions are compacted. When a compaction fails, or Ctrl-C or SIGTERM ends it, the topic
    is unchanged. Exit code 0 is success, 1 a failure, 2 a wrong command line.

    \b
    Compact in this process:
      pulsarium compact orders --data ./data
    Use all cores with Spark (pip install "pulsarium[spark]"):
      pulsarium compact orders --data ./data --engine spark
    Use a Spark cluster, over a folder that its workers share:
      pulsarium compact orders --data ./data --master spark://host:7077 --work-dir /mnt/shared
    Let a running broker compact the topic:
      pulsarium admin topics compact orders
    """
    options = gather(asked)
    names = [parse(each) for each in topics]
    from pulsarium.cli.logs import configure

    configure(log_level, "text")
    if not run(options, names):
        sys.exit(RunRefused.exit_code)


def parse(name: str) -> TopicName:
    """Return the parsed name of a persistent topic. Raise `CommandRefusal` for another name."""
    from pulsarium.proto.errors import InvalidTopicName
    from pulsarium.proto.topic_name import TopicName

    try:
        parsed = TopicName.parse(name)
    except InvalidTopicName as error:
        raise RequestRefused(str(error)) from None
    if not parsed.is_persistent:
        raise RequestRefused(f"{parsed}: only persistent topics can be compacted; name one")
    return parsed


def gather(asked: dict[str, Any]) -> ServeOptions:
    """Return the options of a broker without ports that only compacts. Raise `CommandRefusal` for wrong options."""
    from pulsarium.broker.config import ConfigError, ServeOptions, load
    from pulsarium.broker.storage.database import DATABASE_NAME
    from pulsarium.cli.serve import check_engine, pairs

    if not (asked["data"] / DATABASE_NAME).is_file():
        raise RunRefused(
            f"--data {asked['data']}: the folder holds no data of a broker; name the folder of serve --data"
        )
    try:
        config = load(asked["config"], asked["overrides"]).config
    except ConfigError as error:
        raise RequestRefused(str(error)) from None
    # This process's defaults may not be those of the broker of the data, so only policies may delete anything.
    quiet = replace(
        config,
        brokerDeleteInactiveTopicsEnabled=False,
        defaultRetentionTimeInMinutes=-1,
        defaultRetentionSizeInMB=-1,
    )
    own = {key: asked[key] for key in ("master", "work_dir", "format") if asked[key] is not None}
    name = asked["name"] or ("spark" if own else "two-phase")
    given = (*own.items(), *pairs(asked["options"], "--option"))
    check_engine(name, given)
    return ServeOptions(config=quiet, data=asked["data"], compaction_engine=name, compaction_options=given)


def run(options: ServeOptions, names: list[TopicName]) -> bool:
    """Return whether all topics were compacted. Raise `CommandRefusal` when the data cannot be used."""
    from pulsarium.cli.run import run_job

    try:
        return run_job(options, _compact_until_signalled, options, names)
    except CommandRefusal as refusal:
        raise _with_advice(refusal) from None


def _with_advice(refusal: CommandRefusal) -> CommandRefusal:
    if "in use by another" in refusal.message:
        return RunRefused(f"{refusal.message}; let the running broker compact: pulsarium admin topics compact TOPIC")
    return refusal


async def _compact_until_signalled(options: ServeOptions, names: list[TopicName]) -> bool:
    import trio

    if current_thread() is not main_thread():  # only the main thread receives signals
        return await _compact_all(options, names)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_at_signal, signals)
            succeeded = await _compact_all(options, names)
            nursery.cancel_scope.cancel()
    return succeeded


async def _end_at_signal(signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        raise RunRefused("interrupted: the current topic is unchanged; run the command again")


async def _compact_all(options: ServeOptions, names: list[TopicName]) -> bool:
    from pulsarium.broker.server import open_core

    async with open_core(options) as broker:
        found = [topic for name in names for topic in topics_of(broker, name)]
        succeeded = True
        for name in found:
            topic = persistent(broker, name)
            try:
                succeeded &= await _compact(topic)
            finally:
                topic.compaction.close()
        return succeeded


def topics_of(broker: Broker, name: TopicName) -> list[TopicName]:
    """Return the topic, or its partitions. Raise `CommandRefusal` when the topic does not exist."""
    cluster = broker.cluster
    count = cluster.metadata.partitions_of(name)
    found = [name.partition(index) for index in range(count)] if count else [name]
    for each in found:
        if not cluster.topics.exists(each):
            raise RunRefused(f"topic {each} does not exist in this data folder")
    return found


def persistent(broker: Broker, name: TopicName) -> PersistentTopic:
    return broker.cluster.topics.find_persistent(name)


async def _compact(topic: PersistentTopic) -> bool:
    import trio

    from pulsarium.broker.model.compaction.compacted import CompactedLedger

    compaction = topic.compaction
    made = topic.stores.compactor
    assert made is not None
    compaction.compactor = watched = WatchedEngine(made, entries_to_read(topic))
    bar = progress(STEPS, topic.name.local_name, sys.stderr)
    with bar if sys.stderr.isatty() else nullcontext() as shown:
        compaction.trigger()
        while compaction.status == "RUNNING":
            await trio.sleep(POLL_SECONDS)
            if shown is not None:
                shown.update(max(0, int(watched.finished * STEPS) - shown.pos))
    if compaction.status == "ERROR":
        click.echo(f"pulsarium: {topic.name}: {compaction.error}; the topic is unchanged", file=sys.stderr)
        return False
    compacted, figures = compaction.compacted, compaction.last_run
    kept = compacted.ledger.confirmed if isinstance(compacted, CompactedLedger) else 0
    if figures.succeeded_ms:
        took = f"{figures.removed} messages removed in {figures.duration_ms / 1000:.1f} s"
        click.echo(f"{topic.name}: {kept} entries kept, {took}")
    else:
        click.echo(f"{topic.name}: no new messages, {kept} entries kept")
    return True


def entries_to_read(topic: PersistentTopic) -> int:
    """Return about how many entries an engine reads: those of the last compaction and those stored since."""
    from pulsarium.broker.model.compaction.compacted import CompactedLedger

    compacted, horizon = topic.compaction.compacted, topic.compaction.compacted.horizon
    left = compacted.ledger.confirmed if isinstance(compacted, CompactedLedger) else 0
    newer = (each for each in topic.ledger.ledgers.values() if horizon is None or each.id >= horizon.ledger_id)
    return left + sum(each.confirmed for each in newer)


class WatchedEngine:
    """An engine with its progress: reading the topic is one half of the work, the second pass or the job the other."""

    def __init__(self, made: Compactor, entries: int) -> None:
        self._engine = made
        self._entries = max(entries, 1)
        self._read = 0

    def create_raw_reader(self, topic: Compactable) -> RawReader:
        return _Counted(self._engine.create_raw_reader(topic), self._count)

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        return self._engine.compact(reader, writer, ready, retain_null_key=retain_null_key)

    def _count(self, entries: int) -> None:
        self._read += entries

    @property
    def finished(self) -> float:
        """Return the finished part of the work, from 0 to 1."""
        job: float = getattr(self._engine, "finished", 0.0)
        return min(1.0, (self._read / self._entries + job) / 2)


class _Counted:
    def __init__(self, reader: RawReader, count: Callable[[int], None]) -> None:
        self._reader = reader
        self._count = count
        self.rewind = reader.rewind
        self.last = reader.last

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found = self._reader.read(ready)
        self._count(len(found or ()))
        return found
