"""Handle a connection's commands in order, and pause the connection when its client publishes too much.

Everything that a client sends passes here: from the frames of a read, through the handler of each command, to the end
of the connection's slice. These promises are kept for each connection:

- Commands are handled in the order in which they came, one at a time. A command that takes several turns
  (`handle_in_slices`) or waits for a thread (`handle_aside`) keeps the frames behind it waiting, and none of another
  connection.
- A handler is a plain function. It changes the model at once, and notes what is to follow: a commit, a dispatch, bytes
  for the socket (`broker/turn.py`). No other command runs in between, so a handler sees no half-made change.
- A connection uses the loop for one slice of time at once, however many frames were read.
- Reading stops while answers are not read (`wait_for_room`), too many SENDs wait for receipts, or a rate is exceeded.
  Then the client's own TCP window fills, which is how Pulsar slows clients down.
- A fault of the client closes its own connection, and a fault of a handler does too, with its trace in the log.

Consecutive plain SENDs of a producer are published together (`SendRun`), because they are nearly all of the traffic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.topic.producers import AppendRun, Producer
from pulsarium.broker.net.slices import Slice, Use, work_for_a_slice
from pulsarium.broker.session.outgoing import Frame, OutgoingFrames
from pulsarium.broker.turn import Turn
from pulsarium.proto.commands import parse, parse_plain_send, start_of_sequence_id
from pulsarium.proto.errors import CommandError, EntryError
from pulsarium.proto.framing import BYTES
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_SEQUENCE

log = PartLog("session")
T = TypeVar("T")


LONGEST_RUN = 128
"""Most SENDs that are published together: their storing takes less than a slice."""

Handler = Callable[[Any, Any, bytes], None]  # session, body of the command, bytes behind it in the frame


class CloseConnection(Exception):
    """Close the connection, as Pulsar does for this fault of the client. The text goes to the log."""


class Gated(Protocol):
    """A connection whose commands pass a gate."""

    address: str
    connected: bool
    closed: bool
    handling: pb.BaseCommand | None
    """The command whose handler runs, or ran last."""
    producers: dict[int, Producer]
    outgoing: OutgoingFrames

    def flush(self) -> None: ...

    def handled(self) -> None:
        """Note that every frame that was read is handled."""
        ...

    def close(self, reason: str) -> None: ...


class Gate:
    """Pass commands to their handlers. No command overtakes the frames that were read before.

    A connection handles frames for one slice (`broker/net/slices.py`). Then the rest of them waits, until the
    connection is the one that used the event loop least.
    """

    def __init__(self, session: Gated, turn: Turn, handlers: Mapping[int, Handler], most_unanswered: int) -> None:
        self.handlers = handlers
        self.takes_runs = False  # whether SENDs are published as they are, and may be so together
        self.halted = False  # handles no more commands now: closed, or paused by a limit
        self.unanswered = 0  # SENDs without a receipt (maxPendingPublishRequestsPerConnection)
        self.use = Use()
        self.unread = False  # paused until the client reads its answers
        self._session = session
        self._turn = turn
        self._run = SendRun(session, self)
        self._most_unanswered = most_unanswered
        self._limits = 0  # limits that pause the connection
        self._steps: Iterator[None] | None = None  # rest of the command that is handled in slices
        self._latest = "SEND"  # the latest command that was not part of a run
        self._queued = False  # waits for its next slice
        self._waiting: deque[Iterator[Frame]] = deque()

    def handle(self, frames: Iterable[Frame]) -> None:
        """Handle commands in order. When a command pauses the connection, the frames behind it wait."""
        coming = iter(frames)
        if self.waits:
            self._waiting.append(coming)
        elif self._turn.fair.is_crowded:
            self._waiting.append(coming)
            self._wait_for_slice()
        else:
            slice_ = Slice()
            self._handle(coming, slice_)
            self._used(slice_.began)

    def _used(self, began: float) -> None:
        """Note that the connection has used the loop since `began`."""
        seconds = perf_counter() - began
        self.use.seconds += seconds
        self._turn.stalls.took(seconds, self._latest, "of", self._session)

    def _handle(self, coming: Iterator[Frame], slice_: Slice) -> None:
        session, command, run, longest = self._session, pb.BaseCommand(), self._run, LONGEST_RUN
        session.handling = command
        try:
            for head, trailing in coming:
                if run.takes(head, trailing):
                    longest -= 1
                    if longest:
                        continue
                    longest = LONGEST_RUN
                    run.publish()
                else:
                    run.publish()
                    spec = parse(head, command, trailing)
                    self._latest = spec.name
                    handler = self.handlers.get(spec.type)
                    if handler is None:
                        early = "" if session.connected else " before CONNECT"
                        raise CloseConnection(f"{spec.name} is not accepted{early}")
                    handler(session, getattr(command, spec.field), trailing)
                if self.halted:
                    self._waiting.appendleft(coming)
                    return
                if slice_.is_over:
                    self._waiting.appendleft(coming)
                    self._wait_for_slice()
                    return
            run.publish()
        except Exception as error:
            self._failed(error)

    def _wait_for_slice(self) -> None:
        self._queued = self.halted = True
        self._turn.next_slice(self.use, self._has_slice)

    def _has_slice(self) -> None:
        self._queued = False
        steps, self._steps = self._steps, None
        if steps is not None:
            self._continue(partial(self.handle_in_slices, steps))
        self._go_on()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, (CloseConnection, CommandError, EntryError)):
            self._session.close(str(error))
        else:
            log.error("a command failed", exception=error, peer=self._session.address)
            self._session.close("a command failed in the broker")

    @property
    def paused(self) -> bool:
        """Return whether a limit, too many SENDs without a receipt, or frames without a slice pause reading."""
        return self._limits > 0 or self._queued or self.is_full

    @property
    def why_paused(self) -> str:
        """Return why the connection is paused, in words for people, or "". A wait for a slice is none."""
        if self._limits:
            return "a limit of the rate or of memory"
        if self.is_full:
            return "too many messages wait for their receipts (maxPendingPublishRequestsPerConnection)"
        return "the client does not read its answers" if self.unread else ""

    @property
    def is_full(self) -> bool:
        """Return whether too many SENDs wait for a receipt."""
        return self.unanswered >= self._most_unanswered

    def handle_in_slices(self, steps: Iterator[None]) -> None:
        """Handle a command in several turns, step by step, so that other connections are served meanwhile.

        Frames behind the command wait for its last step. The steps end with the connection.
        """
        if work_for_a_slice(steps):
            self._steps = steps
            self._wait_for_slice()

    def handle_aside(self, work: Callable[[], T], handle: Callable[[T], None]) -> None:
        """Handle a command with what `work` returns, which a thread does. Frames behind the command wait."""
        self._queued = self.halted = True

        def done(prepared: T) -> None:
            self._turn.next_slice(self.use, partial(self._prepared, partial(handle, prepared)))

        self._turn.aside(work, done, self._failed)

    def _prepared(self, handle: Callable[[], None]) -> None:
        self._queued = False
        self._continue(handle)
        self._go_on()

    def _continue(self, handle: Callable[[], None]) -> None:
        """Handle the rest of a command, unless the connection has ended."""
        if self._session.closed:
            return
        began = perf_counter()
        try:
            handle()
        except Exception as error:
            self._failed(error)
        self._used(began)

    def publish_started(self, count: int) -> None:
        self.unanswered += count

    def publish_finished(self, count: int) -> None:
        was_full = self.unanswered >= self._most_unanswered
        self.unanswered -= count
        if was_full:
            self._turn.flush(self._session)

    @property
    def waits(self) -> bool:
        """Return whether new frames are kept for later."""
        return self._limits > 0 or self.unread or self._queued

    def pause(self) -> None:
        """Pause the connection for one more limit."""
        self._limits += 1
        if self._limits == 1:
            self.halted = True
            for producer in self._session.producers.values():  # of all topics, as in Pulsar
                producer.topic.publish_limited += 1

    def resume(self) -> None:
        """Lift one limit. Without any, the connection continues."""
        self._limits -= 1
        self._go_on()

    def wait_for_room(self) -> None:
        """Handle no more commands until the client has read its answers. Keep-alive continues."""
        self.unread = self.halted = True

    def has_room(self) -> None:
        """Continue, because the client has read its answers."""
        self.unread = False
        self._go_on()

    def _go_on(self) -> None:
        if self.waits or self._session.closed:
            return
        self.halted = False
        slice_ = Slice()
        while self._waiting and not self.halted:
            self._handle(self._waiting.popleft(), slice_)
        self._used(slice_.began)
        if not self.halted:
            self._session.handled()
        self._turn.flush(self._session)

    def hurry(self) -> None:
        """Handle now what waits for a slice, because the connection ends: a lab has held it until then."""
        while self._queued and not self._session.closed:
            self._has_slice()

    def close(self) -> None:
        """Drop all waiting frames, because the connection ended."""
        self.halted = True
        self._waiting.clear()
        self._steps = None


class SendRun:
    """Consecutive SENDs of one producer, which are published together.

    A SEND joins when neither its fields nor its topic ask for a look at each message. A tap may act between two SENDs,
    so a connection with a tap has no runs.
    """

    def __init__(self, session: Gated, gate: Gate) -> None:
        self._session = session
        self._gate = gate
        self._publisher: Producer | None = None
        self._append_run: AppendRun | None = None
        self._run: list[PendingPublish] = []
        self._fields = pb.CommandSend()  # of the last parsed SEND; only numbers, so it takes no more memory
        self._following = b""  # the command of the next SEND, if only its sequence id is one higher
        self._sequence_id = 0  # of the last SEND
        self._at = 0  # where the sequence id begins in `_following`

    def takes(self, command: bytes, entry: bytes) -> bool:
        """Return whether a frame is a SEND that joined."""
        fields = self._fields
        if command == self._following and self._publisher is not None:  # nearly all: nothing is left to parse
            self._run.append(
                PendingPublish(self._publisher, entry, self._sequence_id + 1, NO_SEQUENCE, fields.num_messages)
            )
            self._expect_next(command, self._at)
            return True
        self._following = b""
        if not parse_plain_send(command, fields):
            return False
        producer_id, sequence_id, highest = fields.producer_id, fields.sequence_id, fields.highest_sequence_id
        publisher = self._publisher
        if publisher is None or publisher.producer_id != producer_id:
            self.publish()
            if (publisher := self._begin(producer_id)) is None:
                return False
        if highest < sequence_id:
            if not highest and sequence_id == self._sequence_id + 1:
                self._expect_next(command, start_of_sequence_id(command))
            highest = NO_SEQUENCE
        self._sequence_id = sequence_id
        self._run.append(PendingPublish(publisher, entry, sequence_id, highest, fields.num_messages))
        return True

    def _expect_next(self, command: bytes, at: int) -> None:
        """Note that this SEND had the next sequence id. The one that follows differs in one byte, nearly always."""
        self._sequence_id += 1
        self._at, byte = at, command[at]
        self._following = command[:at] + BYTES[byte + 1] + command[at + 1 :] if byte & 0x7F != 0x7F else b""

    def _begin(self, producer_id: int) -> Producer | None:
        session = self._session
        publisher = session.producers.get(producer_id)
        if publisher is None or session.outgoing.tap is not None or not self._gate.takes_runs:
            return None
        self._append_run = publisher.topic.append_run
        if self._append_run is not None:
            self._publisher = publisher
        return self._publisher

    def publish(self) -> None:
        """Publish the SENDs that joined."""
        publisher, append_run, run = self._publisher, self._append_run, self._run
        if publisher is not None and append_run is not None:
            self._publisher, self._run = None, []
            self._gate.publish_started(len(run))
            if len(run) == 1:  # which costs less
                publisher.publish(run[0])
            else:
                publisher.publish_run(run, append_run)
