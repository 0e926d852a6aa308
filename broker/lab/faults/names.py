"""Names in expressions of `when`: facts of a frame, and the protobuf fields of its command, metadata and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsarium.broker.expression import Condition, ExpressionError, FrameField, Value, parse
from pulsarium.broker.lab.faults.tapped import WITH_ENTRY, TappedFrame, names_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import did_you_mean, text_of


class Fact(NamedTuple):
    """A name of one word, with its text in docs/faults.md."""

    kind: type
    read: Callable[[TappedFrame], Iterable[Value]]
    text: str
    choices: tuple[str, ...] = ()
    of_entry: bool = False


def _named(attribute: str) -> Callable[[TappedFrame], Iterable[Value]]:
    """Return a reader of a name of the frame, which yields no name when the frame has none."""
    return lambda frame: filter(None, [getattr(frame, attribute)])


FACTS: Final[Mapping[str, Fact]] = {
    "command": Fact(
        str, lambda frame: [frame.name], "The name of the command.", tuple(spec.name for spec in COMMANDS.values())
    ),
    "sender": Fact(
        str,
        lambda frame: [frame.sender.value],
        "The sender of the frame.",
        (Direction.CLIENT.value, Direction.BROKER.value),
    ),
    "topic": Fact(
        str,
        lambda frame: names_of(frame.topic),
        "The topic. Its full name matches, also without domain or partition, and its local name.",
    ),
    "producer": Fact(str, _named("producer"), "The producer's name."),
    "consumer": Fact(str, _named("consumer"), "The consumer's name."),
    "subscription": Fact(str, _named("subscription"), "The subscription's name."),
    "client_version": Fact(str, _named("client_version"), "The client's version in CONNECT."),
    "frame_size": Fact(int, lambda frame: [len(frame.data)], "The bytes of the frame, its length word included."),
    "payload_size": Fact(
        int,
        lambda frame: [] if frame.metadata is None else [len(frame.payload)],
        "The bytes of the payload as sent: a whole batch, compressed and encrypted.",
        of_entry=True,
    ),
}
BODY: Final = "body"
MESSAGE: Final = "message"
VALUE: Final = "value"
ENTRY: Final[Mapping[str, tuple[Any, Callable[[TappedFrame], list[Any]]]]] = {
    "metadata": (pb.MessageMetadata.DESCRIPTOR, lambda frame: [] if frame.metadata is None else [frame.metadata]),
    MESSAGE: (pb.SingleMessageMetadata.DESCRIPTOR, lambda frame: [metadata for metadata, _ in frame.messages]),
}
"""The roots whose names are fields of the protobuf messages of an entry."""
ROOTS: Final = {
    BODY: "A field of the command: `body.sequence_id` of a SEND, `body.subType` of a SUBSCRIBE.",
    "metadata": "A field of the entry's MessageMetadata. A batch has one, and its messages have their own.",
    MESSAGE: "A field of SingleMessageMetadata, of any message of the entry, in a batch or alone. Not when encrypted.",
    f"{MESSAGE}.{VALUE}": "The bytes of any message of the entry, decompressed. An entry of over 8,192 "
    "messages, or over 4 MiB after decompression, has no messages here.",
}
"""The roots with their texts in docs/faults.md."""
_KINDS: Final[Mapping[int, type]] = {
    FieldDescriptor.CPPTYPE_ENUM: str,
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_FLOAT: float,
}


def condition(text: str, spec: CommandSpec | None) -> Condition:
    """Return the condition of an expression about frames of a command, or of any command for None.

    Raise `ExpressionError` when the expression is not valid, or names a field that the command does not have.
    """
    return parse(text, partial(_field, spec))


def _field(spec: CommandSpec | None, path: tuple[str, ...]) -> FrameField:
    root, rest = path[0], path[1:]
    if root == BODY:
        return _of_body(COMMANDS.values() if spec is None else [spec], rest)
    fact, entry = FACTS.get(root), ENTRY.get(root)
    if fact is None and entry is None:
        raise _unknown(root, (*FACTS, BODY, *ENTRY))
    if (fact is None or fact.of_entry) and spec is not None and spec.type not in WITH_ENTRY:
        raise ExpressionError(f"{spec.name} has no {root}: SEND and MESSAGE have")
    if fact is not None:
        if rest:
            raise ExpressionError(f"{root} has no field {rest[0]}")
        return FrameField(fact.kind, fact.read, fact.choices)
    assert entry is not None
    if (root, *rest) == (MESSAGE, VALUE):
        return FrameField(bytes, lambda frame: [value for _, value in frame.messages])
    described, messages = entry
    way = _Way(described, rest)
    return FrameField(way.kind, lambda frame: way.values(messages(frame)), way.choices)


def _of_body(specs: Iterable[CommandSpec], path: tuple[str, ...]) -> FrameField:
    """Return a field of the commands that have this path."""
    ways, known, failures = dict[int, _Way](), dict[str, None](), list[ExpressionError]()
    for spec in specs:
        described: Any = pb.BaseCommand.DESCRIPTOR.fields_by_name[spec.field].message_type
        known |= dict.fromkeys(described.fields_by_name)
        try:
            ways[spec.type] = _Way(described, path)
        except ExpressionError as error:
            if not path or path[0] in described.fields_by_name:
                failures.append(error)
    kinds = {way.kind for way in ways.values()}
    if not kinds:
        raise failures[0] if failures else _unknown(path[0], known)
    if len(kinds) > 1:
        raise ExpressionError(f"{'.'.join((BODY, *path))} differs between commands: select one command")
    choices = dict.fromkeys(choice for way in ways.values() for choice in way.choices)

    def read(frame: TappedFrame) -> Iterable[Value]:
        way = ways.get(frame.spec.type)
        return () if way is None else way.values([frame.body])

    return FrameField(kinds.pop(), read, tuple(choices))


def _unknown(name: str, known: Iterable[str]) -> ExpressionError:
    names = list(known)
    return ExpressionError(f"there is no {name}; {did_you_mean(name, names) or 'there are ' + ', '.join(names)}")


class _Way:
    """The way from a protobuf message to the values of one of its fields, through messages inside it."""

    def __init__(self, described: Any, path: Iterable[str]) -> None:
        """Follow a path of names. The name behind a list of keys and values is a key, such as properties.color."""
        self._steps: list[tuple[FieldDescriptor, str | None]] = []
        words = iter(path)
        fields = described.fields_by_name
        for word in words:
            if word not in fields:
                raise _unknown(word, fields)
            self._leaf = fields[word]
            inner = self._leaf.message_type
            if inner is None:
                break
            key = (
                next(words, None) if self._leaf.is_repeated and set(inner.fields_by_name) == {"key", "value"} else None
            )
            self._steps.append((self._leaf, key))
            fields = inner.fields_by_name
            if key is not None:
                self._leaf = fields["value"]
                break
        else:
            raise ExpressionError(f"a field is wanted: one of {', '.join(fields)}, or a key")
        more = next(words, None)
        if more is not None:
            raise ExpressionError(f"{self._leaf.name} has no field {more}")

    @property
    def kind(self) -> type:
        """Return the type of the values."""
        if self._leaf.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            return str if self._leaf.type == FieldDescriptor.TYPE_STRING else bytes
        return _KINDS.get(self._leaf.cpp_type, int)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the names of an enum, or none."""
        return () if self._leaf.enum_type is None else tuple(self._leaf.enum_type.values_by_name)

    def values(self, messages: Iterable[Message]) -> Iterator[Value]:
        """Yield the values that are set, and the default that Pulsar declares for one that is not."""
        for field, key in self._steps:
            messages = [each for message in messages for each in _inner(message, field) if _has_key(each, key)]
        leaf, kind = self._leaf, self.kind
        for message in messages:
            if leaf.is_repeated or leaf.has_default_value or message.HasField(leaf.name):
                found = getattr(message, leaf.name)
                for value in found if leaf.is_repeated else [found]:
                    if leaf.enum_type is not None:
                        yield leaf.enum_type.values_by_number[value].name
                    else:
                        yield text_of(value) if kind is str else value


def _inner(message: Message, field: FieldDescriptor) -> Iterable[Message]:
    if field.is_repeated:
        inside: Iterable[Message] = getattr(message, field.name)
        return inside
    return [getattr(message, field.name)] if message.HasField(field.name) else []


def _has_key(message: Any, key: str | None) -> bool:
    return key is None or text_of(message.key) == key
