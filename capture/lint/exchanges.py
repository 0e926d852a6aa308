"""Match requests to their answers, connection by connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyroaring import BitMap64

from pulsarium.capture.lint.frames import Frame
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from pulsarium.proto.numbers import NO_REQUEST

OK = "ok"
NO_ANSWER = "no answer"
CLOSED = "closed"

Key = tuple[object, ...]

_T = BaseCommand
_OTHER_ID: dict[int, str] = {
    _T.SCALABLE_TOPIC_LOOKUP: "session_id",
    _T.SCALABLE_TOPIC_UPDATE: "session_id",
    _T.WATCH_SCALABLE_TOPICS: "watch_id",
    _T.WATCH_SCALABLE_TOPICS_UPDATE: "watch_id",
    _T.WATCH_TC_ASSIGNMENTS: "watch_id",
    _T.WATCH_TC_ASSIGNMENTS_UPDATE: "watch_id",
}
_SENDS = {_T.SEND, _T.SEND_RECEIPT, _T.SEND_ERROR}
_OF_A_CONSUMER = {"ACK", "CONSUMER_STATS", "GET_LAST_MESSAGE_ID", "SEEK", "UNSUBSCRIBE"}
_MOST_WAITING = 50_000
"""Most waiting requests, by kind. The oldest are given up."""
_ANSWERED_BY = {spec.reply: spec.type for spec in COMMANDS.values() if spec.reply is not None}


@dataclass(frozen=True, slots=True)
class LintedExchange:
    """A request and its outcome.

    outcome: `ok`, the name of Pulsar's error, `no answer` (none until the capture's end), or `closed` (its connection,
        producer or consumer was closed first).
    latency_us: time to the final answer, or None.
    """

    request: Frame
    answer: Frame | None
    outcome: str
    latency_us: float | None


class Matcher:
    """Matcher of one connection's requests and answers, which gets all frames in order."""

    def __init__(self) -> None:
        self._open: dict[Key, deque[Frame]] = {}
        self._sends: dict[int | None, dict[Key, None]] = {}  # keys of `_open`, by producer, in order
        self._shut = BitMap64()  # producers that the broker closed: it drops their messages in flight
        self.excused: set[int] = set()
        """Numbers of waiting requests that may stay without an answer.

        These are a PRODUCER that waits for exclusive access, requests for a consumer that the broker closed, and frames
        that a fault of the lab changed.
        """

    def waiting(self) -> Iterator[Frame]:
        """Yield the requests without an answer, those of one producer in their order."""
        for frames in self._open.values():
            yield from frames

    def request_of(self, frame: Frame) -> Frame | None:
        """Return the request that this frame answers, or None."""
        return self.first(answered_key(frame))

    def first(self, key: Key | None) -> Frame | None:
        """Return the oldest request that waits under a key."""
        frames = None if key is None else self._open.get(key)
        return frames[0] if frames else None

    def last(self, key: Key | None) -> Frame | None:
        """Return the newest request that waits under a key."""
        frames = None if key is None else self._open.get(key)
        return frames[-1] if frames else None

    def oldest_send(self, producer: int | None) -> Frame | None:
        """Return the oldest SEND of a producer that waits for its receipt."""
        return self.first(next(iter(self._sends.get(producer, ())), None))

    def feed(self, frame: Frame) -> list[LintedExchange]:
        """Return the exchanges that this frame ends.

        An answer ends one request. The end of a producer or consumer ends all its requests.
        """
        done: list[LintedExchange] = []
        answered = answered_key(frame)
        if answered is not None and answered in self._open and not _is_interim(frame):
            request = self._take(answered)
            latency = (frame.record.monotonic_ns - request.record.monotonic_ns) / 1000
            done.append(LintedExchange(request, frame, frame.error or OK, latency))
            if request.name == "CLOSE_PRODUCER" and frame.error is None:
                done += self._closed(request.producer_id)
        elif answered is not None and answered in self._open:
            self.excused.add(self._open[answered][0].number)
        elif frame.name == "CLOSE_PRODUCER" and frame.sender is Direction.BROKER:
            self._shut.add(frame.producer_id or 0)
            done += self._closed(frame.producer_id)
        elif frame.name == "CLOSE_CONSUMER" and frame.sender is Direction.BROKER:
            self._excuse_all_of(frame.consumer_id)
        elif frame.name == "PRODUCER":
            self._shut.discard(frame.producer_id or 0)
        asked = request_key(frame)
        if frame.name == "SEND" and (frame.producer_id or 0) in self._shut:
            done.append(LintedExchange(frame, None, CLOSED, None))
        elif asked is not None:
            done += self._wait(asked, frame)
        return done

    def _wait(self, key: Key, frame: Frame) -> list[LintedExchange]:
        """Add a request, and return one that has waited for too long."""
        if frame.entry:  # waiting requests must not hold megabytes
            frame = replace(frame, entry=b"", record=replace(frame.record, data=b""))
        self._open.setdefault(key, deque()).append(frame)
        if frame.name == "SEND":
            self._sends.setdefault(frame.producer_id, {})[key] = None
        if frame.faulted:
            self.excused.add(frame.number)
        if len(self._open) <= _MOST_WAITING:
            return []
        return [LintedExchange(self._take(next(iter(self._open))), None, NO_ANSWER, None)]

    def end(self, *, closed: bool) -> list[LintedExchange]:
        """Return the requests without an answer when the connection is closed, or when the capture ends."""
        left = [LintedExchange(frame, None, CLOSED if closed else NO_ANSWER, None) for frame in self.waiting()]
        self._open.clear()
        self._sends.clear()
        self.excused.clear()
        return sorted(left, key=lambda exchange: exchange.request.number)

    def _closed(self, producer: int | None) -> list[LintedExchange]:
        """Return the SENDs of a closed producer, which get no receipts."""
        gone = self._sends.pop(producer, {})
        return [LintedExchange(frame, None, CLOSED, None) for key in gone for frame in self._open.pop(key)]

    def _take(self, key: Key) -> Frame:
        frames = self._open[key]
        frame = frames.popleft()
        self.excused.discard(frame.number)
        if not frames:
            del self._open[key]
            if frame.name == "SEND":
                del self._sends[frame.producer_id][key]
        return frame

    def _excuse_all_of(self, consumer: int | None) -> None:
        """Accept that requests of a closed consumer get no answer, except a SEEK."""
        self.excused.update(
            frame.number for frame in self.waiting() if frame.consumer_id == consumer and frame.name in _OF_A_CONSUMER
        )


def request_key(frame: Frame) -> Key | None:
    """Return the key that a request shares with its answer, or None for a frame that is not a request."""
    spec = frame.spec
    if spec is None or spec.reply is None:
        return None
    if spec.direction is Direction.BOTH and spec.type != _T.PING and frame.sender is Direction.BROKER:
        return None  # a broker's CLOSE_PRODUCER and CLOSE_CONSUMER have no answer
    if spec.type in _SENDS:
        return ("producer_id", frame.producer_id, frame.sequence_id)
    if frame.request_id is not None:
        return ("request_id", frame.request_id)
    if spec.type == _T.ACK:
        return None  # an ACK without request_id expects no answer
    if spec.type in _OTHER_ID:
        return (spec.reply, getattr(frame.body, _OTHER_ID[spec.type]))
    return (spec.reply, frame.sender)


def answered_key(frame: Frame) -> Key | None:
    """Return the key of the request that a frame would answer, or None for a frame that is not an answer."""
    spec = frame.spec
    if spec is None or (spec.reply is not None and spec.type != _T.AUTH_CHALLENGE):
        return None
    if spec.type in (_T.SEND_RECEIPT, _T.SEND_ERROR):
        return ("producer_id", frame.producer_id, frame.sequence_id)
    if frame.request_id is not None and spec.direction is Direction.BROKER:
        if spec.type == _T.ERROR and frame.request_id == NO_REQUEST:
            return (_T.CONNECTED, Direction.CLIENT)
        return ("request_id", frame.request_id)
    if spec.type in _OTHER_ID:
        return (spec.type, getattr(frame.body, _OTHER_ID[spec.type]))
    if spec.type in _ANSWERED_BY:
        return (spec.type, other(frame.sender))
    return None


def other(side: Direction) -> Direction:
    """Return the other side."""
    return Direction.CLIENT if side is Direction.BROKER else Direction.BROKER


"""request_id of an ERROR that answers CONNECT."""


def _is_interim(frame: Frame) -> bool:
    """Return whether a PRODUCER_SUCCESS only tells a producer to wait for exclusive access."""
    return frame.spec is not None and frame.spec.type == _T.PRODUCER_SUCCESS and not frame.body.producer_ready
