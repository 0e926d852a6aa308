"""Run scripts/bench breakdown: attribute the CPU time of a message to the parts of the broker that it passes."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from bench.raw_driver import FRAMES_PER_SEGMENT, IDS_PER_ACK, PRODUCER_ID, empty_ack, flow, send_segments
from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.server import open_core
from pulsarium.broker.session.session import Session
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandSubscribe

ABOUT = """\
Runs a broker in this process, with its storage on disk (durability os) and its commit thread, but without sockets. A
session gets the bytes of one read after the other. Time is the CPU time of each thread. The shares are those of a
profiler, scaled to the time without it; a profiler overstates the cost of small functions. The additional cost of a
socket (the kernel, and a turn of trio's loop per read) is the difference to `scripts/bench raw-publish-unbatched`.
"""

TOPIC = "persistent://public/default/breakdown"
PAYLOAD = 1024
READS = 500
CONSUMER = 1
ACK_REQUEST = 9

# Part of a function's path, and the name of that part of the broker. The first match counts.
PARTS = (
    ("google._upb", "protobuf: commands and metadata"),
    ("crc32c", "checksum"),
    ("proto/framing", "frames"),
    ("proto/commands", "which command"),
    ("proto/", "entries"),
    ("broker/session/outgoing", "answers"),
    ("broker/session", "session"),
    ("broker/commands", "command handlers"),
    ("broker/model/topic", "topic and producer"),
    ("broker/model/ledger", "managed ledger"),
    ("broker/model/dispatch", "dispatch"),
    ("broker/model/subscription", "subscription and consumer"),
    ("broker/model/cursor", "cursor"),
    ("broker/turn", "turn"),
    ("broker/storage", "store, on the loop's side"),
    ("broker/", "the rest of the broker"),
    ("trio/", "trio"),
)
BUILT_IN = "~"  # path of built-in functions in a profile
OTHER = "the rest"


class Nowhere:
    """A transport whose peer accepts everything at once."""

    def __init__(self) -> None:
        self.woken = trio.Event()

    def wake(self) -> None:
        """Wake the writer when there is data to write, or when reading may continue."""
        self.woken.set()


@dataclass(frozen=True)
class Breakdown:
    """Microseconds of CPU per message: on the event loop, in total and by part, and on the storage threads."""

    title: str
    loop: float
    parts: dict[str, float]
    threads: float


class Stage:
    """A session of a broker in this process."""

    def __init__(self, session: Session, transport: Nowhere) -> None:
        self._session = session
        self._transport = transport
        self._turn = session.broker.turn
        self._answers = FrameDecoder(1 << 26)

    def read(self, data: bytes) -> None:
        """Handle the bytes of one read, as a transport does."""
        self._turn.begin()
        self._session.receive(data)
        self._turn.finish()

    def written(self) -> bytes:
        return self._session.outgoing.take() if self._session.outgoing.size else b""

    async def answered(self, kinds: Iterable[int]) -> list[BaseCommand]:
        """Wait for a command of each of `kinds`, and return all commands until then."""
        wanted, came = list(kinds), list[BaseCommand]()
        while wanted:
            for command, _ in self._answers.feed(self.written()):
                came.append(BaseCommand.FromString(command))
                if came[-1].type in wanted:
                    wanted.remove(came[-1].type)
            await trio.lowlevel.checkpoint()
        return came

    async def settled(self) -> None:
        """Wait for all commits, and discard the output."""
        kept = trio.Event()
        self._turn.after_commit(lambda error: kept.set())
        await kept.wait()
        self.written()

    async def may_read(self) -> None:
        """Wait until the broker would read from its socket again."""
        while not self._session.may_read:
            self._transport.woken = trio.Event()
            await self._transport.woken.wait()
            self.written()


def framed(command: BaseCommand) -> bytes:
    return frame(command.SerializeToString())


async def open_stage(session: Session, transport: Nowhere) -> Stage:
    stage = Stage(session, transport)
    connect = BaseCommand(type=BaseCommand.CONNECT)
    connect.connect.client_version, connect.connect.protocol_version = "bench", 21
    producer = BaseCommand(type=BaseCommand.PRODUCER)
    producer.producer.topic, producer.producer.producer_id, producer.producer.request_id = TOPIC, PRODUCER_ID, 1
    subscribe = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe.subscribe.topic, subscribe.subscribe.subscription = TOPIC, "bench"
    subscribe.subscribe.subType = CommandSubscribe.Shared
    subscribe.subscribe.consumer_id, subscribe.subscribe.request_id = CONSUMER, 2
    stage.read(framed(connect) + framed(subscribe) + framed(producer))
    await stage.answered([BaseCommand.CONNECTED, BaseCommand.SUCCESS, BaseCommand.PRODUCER_SUCCESS])
    return stage


async def serve(stage: Stage, reads: Sequence[bytes]) -> None:
    """Handle the reads one after the other. The next read comes while the previous commit is on its way."""
    for data in reads:
        stage.read(data)
        await trio.lowlevel.checkpoint()
        stage.written()
        await stage.may_read()
    await stage.settled()


def sends(reads: int, each: int) -> list[bytes]:
    """Return reads that hold `each` SEND frames."""
    whole = b"".join(data for data, _ in send_segments(each, PAYLOAD))
    return [whole] * reads


def acknowledgements(ledger_id: int, first: int, reads: int) -> list[bytes]:
    """Return reads that acknowledge a hundred messages each, as official clients do, and grant permits for the next."""
    permits = framed(flow(CONSUMER, IDS_PER_ACK))
    made = []
    for start in range(first, first + reads * IDS_PER_ACK, IDS_PER_ACK):
        ack = empty_ack(CONSUMER)
        for entry_id in range(start, start + IDS_PER_ACK):
            ack.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        made.append(framed(ack) + permits)
    return made


def part_of(where: str, name: str) -> str:
    text = name if where == BUILT_IN else where
    return next((called for place, called in PARTS if place in text), OTHER)


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Return the share of each part.

    Time of Python's built-in functions counts for their callers. Protobuf and checksums are parts of their own.
    """
    seconds: Counter[str] = Counter()
    for (where, _, name), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if where != BUILT_IN or part_of(where, name) != OTHER:
            seconds[part_of(where, name)] += own
            continue
        for (caller, _, caller_name), (_, _, its, _) in callers.items():
            seconds[part_of(caller, caller_name)] += its
    total = sum(seconds.values())
    return {part: spent / total for part, spent in seconds.items()}


async def measured(title: str, messages: int, stage: Stage, reads: Sequence[bytes]) -> Breakdown:
    """Measure the first half of the reads without a profiler, and the second half with one."""
    half = len(reads) // 2
    loop, process = time.thread_time(), time.process_time()
    await serve(stage, reads[:half])
    loop, process = time.thread_time() - loop, time.process_time() - process
    profile = cProfile.Profile()
    profile.enable()
    await serve(stage, reads[half:])
    profile.disable()
    each = loop / (half * messages) * 1e6
    parts = {part: share * each for part, share in shares(profile).items()}
    return Breakdown(title, each, parts, (process - loop) / (half * messages) * 1e6)


async def run(data: Path, reads: int) -> list[Breakdown]:
    found = []
    async with open_core(ServeOptions(config=Config(), data=data)) as broker:
        transport = Nowhere()
        session = broker.open_session("bench", transport)
        stage = await open_stage(session, transport)
        await serve(stage, sends(reads, FRAMES_PER_SEGMENT))  # warm-up
        for each, title in ((FRAMES_PER_SEGMENT, "publish, 64 messages a read"), (1, "publish, one message a read")):
            found.append(await measured(title, each, stage, sends(2 * reads, each)))
        topic = session.producers[PRODUCER_ID].topic
        assert isinstance(topic, PersistentTopic)
        last = topic.ledger.last_confirmed
        stage.read(framed(flow(CONSUMER, IDS_PER_ACK)))
        taken = acknowledgements(last.ledger_id, 0, min(2 * reads, last.entry_id // IDS_PER_ACK))
        found.append(await measured("consume and acknowledge on Shared, 100 a read", IDS_PER_ACK, stage, taken))
        session.ended()
        await stage.settled()
    return found


def shown(found: Sequence[Breakdown]) -> str:
    """Return a Markdown table for each breakdown, the most expensive part first."""
    lines = []
    for each in found:
        lines += [f"| {each.title} | us a message |", "|---|--:|"]
        lines += [f"| {part} | {us:.2f} |" for part, us in sorted(each.parts.items(), key=lambda row: -row[1])]
        lines += [
            f"| **on the event loop** | {each.loop:.2f} |",
            f"| **on the commit thread** | {each.threads:.2f} |",
            "",
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench breakdown", description=ABOUT, formatter_class=layout)
    parser.add_argument(
        "--reads", type=int, default=READS, metavar="N", help=f"reads for each figure (default: {READS})"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        print(shown(trio.run(run, Path(folder, "data"), options.reads)))
    return 0
