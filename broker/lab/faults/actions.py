"""Actions on frames, one class each, and their registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from pulsarium.broker.commands import answers
from pulsarium.broker.lab.faults.rule import Action, Piece, Strike
from pulsarium.broker.lab.faults.tapped import WITH_ENTRY, TappedFrame
from pulsarium.broker.lab.faults.which import FaultError
from pulsarium.proto.commands import CommandSpec
from pulsarium.proto.entry import checksum_matches, strip_broker_metadata
from pulsarium.proto.framing import frame as frame_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import unsigned

MOST_COPIES = 100
LONGEST = 10**9  # seconds: 30 years


@dataclass(frozen=True)
class Answer(Action):
    """Answer the command with this error, in Pulsar's form for it, and do not handle the command.

    With stage "after" the command is handled, and its answer is replaced. A refused CONNECT ends its connection.
    """

    error: int | str = "UnknownError"
    message: str = "a fault of the lab"
    kind = "answer"
    of_client_only = True
    refuses = True

    def __post_init__(self) -> None:
        names = pb.ServerError.keys()
        if self.error not in (*names, *pb.ServerError.values()) or isinstance(self.error, bool):
            raise FaultError(f"no error {self.error!r}; there are {', '.join(names)}")
        try:
            self.message.encode()
        except UnicodeEncodeError:
            raise FaultError(f"message is {self.message!r}, which UTF-8 cannot encode") from None

    @property
    def code(self) -> int:
        return self.error if isinstance(self.error, int) else pb.ServerError.Value(self.error)

    def act(self, strike: Strike) -> Iterator[Piece]:
        command = strike.command
        refusal = answers.refusal(command, self.code, self.message)
        assert refusal is not None  # see Rule.meant
        if strike.is_answer:
            yield strike.changed(frame_of(refusal.SerializeToString()), "answered")
        else:
            yield strike.lost("answered")
            strike.frame.session.command(refusal)
        if command.spec.type in answers.ABOUT_THE_CONNECTION:
            strike.close()


@dataclass(frozen=True)
class Drop(Action):
    """Lose the frame. With stage "after" the command is handled, and its answer is lost."""

    kind = "drop"

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.lost("dropped")


@dataclass(frozen=True)
class Delay(Action):
    """Send the frame this many seconds of the broker's clock after it arrived.

    Everything behind the frame, on this connection and in this direction, waits too.
    """

    seconds: float = 1.0
    kind = "delay"

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= LONGEST:
            raise FaultError(f"seconds is {self.seconds}; it must be more than 0, and not more than {LONGEST}")

    def act(self, strike: Strike) -> Iterator[Piece]:
        strike.hold("delayed", self.seconds)
        yield from ()


@dataclass(frozen=True)
class Duplicate(Action):
    """Send the frame once more, or `times` times more."""

    times: int = 1
    kind = "duplicate"

    def __post_init__(self) -> None:
        if not 1 <= self.times <= MOST_COPIES:
            raise FaultError(f"times is {self.times}; it must be from 1 to {MOST_COPIES}")

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.untouched()
        for _ in range(self.times):
            yield strike.changed(strike.frame.data, "duplicated")


@dataclass(frozen=True)
class Reorder(Action):
    """Let the next frame of this direction overtake this frame. Without one within 0.1 s, the frame goes on."""

    kind = "reorder"

    def act(self, strike: Strike) -> Iterator[Piece]:
        strike.hold("reordered", 0.1, swaps=True)
        yield from ()


@dataclass(frozen=True)
class Corrupt(Action):
    """Corrupt the frame: "checksum" breaks the CRC32C of a SEND or MESSAGE, "byte" changes one byte.

    The byte is one of the entry, or of the command without an entry. The seed chooses the byte.
    """

    what: str = "checksum"
    kind = "corrupt"

    def __post_init__(self) -> None:
        if self.what not in ("checksum", "byte"):
            raise FaultError(f"what is {self.what!r}; it must be checksum or byte")

    def misfit(self, spec: CommandSpec) -> str:
        wrong = self.what == "checksum" and spec.type not in WITH_ENTRY
        return f"{spec.name} has no checksum: SEND and MESSAGE have" if wrong else ""

    def fits(self, frame: TappedFrame) -> bool:
        if self.what == "byte":
            return True
        entry = strip_broker_metadata(frame.entry)
        return frame.spec.type in WITH_ENTRY and len(entry) >= 6 and checksum_matches(entry) is not None

    def act(self, strike: Strike) -> Iterator[Piece]:
        frame, chance = strike.frame, strike.rule.chance
        if self.what == "checksum":
            at = len(frame.data) - len(strip_broker_metadata(frame.entry)) + 5
        else:
            at = chance.randrange(len(frame.data) - len(frame.entry) if frame.entry else 8, len(frame.data))
        changed = bytearray(frame.data)
        changed[at] ^= chance.randrange(1, 256)
        yield strike.changed(bytes(changed), "corrupted")


@dataclass(frozen=True)
class Truncate(Action):
    """Write only the first `keep` bytes of the frame, its length word included, and close the connection."""

    keep: int = 10
    kind = "truncate"

    def __post_init__(self) -> None:
        if self.keep < 0:
            raise FaultError(f"keep is {self.keep}; it must be 0 or more")

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.cut(self.keep)
        strike.close()


@dataclass(frozen=True)
class Close(Action):
    """Close the connection instead of sending the frame."""

    kind = "close"

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.lost("closed")
        strike.close()


@dataclass(frozen=True)
class Stall(Action):
    """Hold this frame, and everything behind it in this direction, until the rule is removed."""

    kind = "stall"

    def act(self, strike: Strike) -> Iterator[Piece]:
        strike.hold("stalled", None)
        yield from ()


@dataclass(frozen=True)
class WrongRequestId(Action):
    """Raise the request id of the frame by one; of SEND, SEND_RECEIPT and SEND_ERROR the sequence id."""

    kind = "wrong-request-id"

    def misfit(self, spec: CommandSpec) -> str:
        return "" if _numbered(spec) else f"{spec.name} has no request id"

    def act(self, strike: Strike) -> Iterator[Piece]:
        frame = strike.frame
        changed = pb.BaseCommand()
        changed.CopyFrom(frame.base)
        field = _numbered(frame.spec)
        setattr(getattr(changed, frame.spec.field), field, unsigned(getattr(frame.body, field) + 1))
        yield strike.changed(frame_of(changed.SerializeToString(), frame.entry), "renumbered")


def _numbered(spec: CommandSpec) -> str:
    """Return the field that identifies the request of a frame, or "" for a command without one."""
    body: Message = getattr(pb.BaseCommand(), spec.field)
    fields = body.DESCRIPTOR.fields_by_name
    return next((name for name in ("sequence_id", "request_id") if name in fields), "")


@dataclass(frozen=True)
class Observe(Action):
    """Count frames, and change nothing. Other rules still act on these frames, and hide none from this rule."""

    kind = "observe"
    observes = True

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.untouched()


#: Every action, by its kind.
ACTIONS: Mapping[str, type[Action]] = {
    action.kind: action
    for action in (Answer, Drop, Delay, Duplicate, Reorder, Corrupt, Truncate, Close, Stall, WrongRequestId, Observe)
}
