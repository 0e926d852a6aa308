"""Expressions of `when`: their grammar, their limits, and the fields of real frames."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pulsarium.broker.expression import DEEPEST, LONGEST, ExpressionError, FrameField, parse
from pulsarium.broker.lab.faults import Drop, FaultError, Faults
from pulsarium.proto import batch, compression, entry
from pulsarium.proto.compression import compress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Failover, Wire, plain

FRAME: dict[str, list[Any]] = {
    "text": ["a\"b'c"],
    "number": [5],
    "ratio": [0.5],
    "yes": [True],
    "no": [False],
    "data": [b"\x00\xff"],
    "many": [1, 2, 3],
    "absent": [],
    "any": ["a", 5, 0.5, True, None, {"b": 1}, [1]],
}
KINDS = {"any": object, "text": str, "ratio": float, "yes": bool, "no": bool, "data": bytes, "absent": str}


def names(path: tuple[str, ...]) -> FrameField:
    """Return the field of FRAME that `path` names. A longer path names a text field, whose value is the path itself."""
    if len(path) > 1:
        return FrameField(str, lambda frame: ["/".join(path)])
    if path[0] not in FRAME:
        raise ExpressionError(f"there is no {path[0]}")
    return FrameField(KINDS.get(path[0], int), lambda frame: frame[path[0]], ("x", "y") if path[0] == "absent" else ())


def holds(text: str) -> bool:
    return parse(text, names)(FRAME)


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "not no",
        "number == 5",
        "number != -6",
        "number > 4 and number >= 5 and number < 6 and number <= 5",
        "ratio < 1 and ratio == 0.5",
        "number in [1, 5]",
        "number not in [1, 6]",
        r"""text == "a\"b'c" and text == 'a"b\'c'""",
        "text contains 'b' and text startswith \"a\" and text endswith 'c'",
        "text matches 'a*c'",
        r"data == b'\x00\xff' and data contains b'\xff'",
        "many == 2 and many != 4",
        "no or no or yes and yes",
        "not (no or number == 6) and (yes)",
        "has text and not has absent",
        "absent != 'x' and absent not in ['x', 'y']",
        "not absent == 'x'",
        "a.trace-id['x y'].b == 'a/trace-id/x y/b'",
        "\n yes\tand(yes)",
        "any == 'a' and any == 5 and any == true and any and any in ['b', 0.5]",
        "any > 4 and any >= 'a' and any startswith 'a' and any matches '?' and any contains 'b'",
        "any != 'b' and any not in [7, false]",
    ],
)
def test_a_condition_that_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "not yes",
        "many == 4",
        "many != 2",
        "number in [6]",
        "yes and no",
        "absent == 'x'",
        "any > 5",
        "any > 'a'",
        "any endswith 'b'",
        "any == b'a'",
    ],
)
def test_a_condition_that_does_not_hold(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "at character 1: a name such as topic or metadata.partition_key is wanted, but the expression ends"),
        ("yes no", "at character 5: and, or or the end of the expression is wanted, not no"),
        ("number = 5", "at character 8: a whole number needs one of ==, !=, <, <=, >, >=, in, not in, contains, "),
        ("yes && no", "at character 5: and, or or the end of the expression is wanted, not &&; write and"),
        ("number == 'a'", "at character 11: a whole number is wanted, not 'a'"),
        ("text == 5", "at character 9: a text is wanted, not 5"),
        ("number == true", "at character 11: a whole number is wanted, not true"),
        ("text < 'a'", "at character 6: < needs a whole number or a number; this field is a text"),
        ("number contains 5", "at character 8: contains needs a text or bytes; this field is a whole number"),
        ("absent == 'z'", "at character 11: there is no 'z'; there are x, y"),
        ("yes and nope", "at character 9: there is no nope"),
        ("(yes", "at character 5: ) is wanted, but the expression ends"),
        ("number in [1", "at character 13: ] is wanted, but the expression ends"),
        ("text == 'a", "at character 9: the text has no end"),
        (r"text == '\q'", r"at character 9: a text has no escape \q; write \\ for a backslash"),
        (r"text == '\ud800'", "at character 9: UTF-8 cannot encode this text"),
        ("yes # no", "at character 5: '#' is not part of an expression"),
        ("number == 5x", "at character 11: '5' is not part of an expression"),
        ("x" * (LONGEST + 1), f"it has {LONGEST + 1} characters; at most {LONGEST} are allowed"),
        ("not " * DEEPEST + "not yes", f"at character 201: more than {DEEPEST} brackets or nots are inside each other"),
    ],
)
def test_an_error_says_where_and_what_is_wanted(text: str, error: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(error)):
        parse(text, names)


WORDS = (
    "yes",
    "no",
    "number",
    "text",
    "and",
    "or",
    "not",
    "in",
    "has",
    "(",
    ")",
    "[",
    "]",
    ",",
    "==",
    "<",
    "5",
    "'a'",
    ".",
)


@given(some.text(max_size=60) | some.lists(some.sampled_from(WORDS), max_size=30).map(" ".join))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    try:
        condition = parse(text, names)
    except ExpressionError:
        return
    assert condition(FRAME) in (True, False)


def _trees() -> some.SearchStrategy[tuple[str, bool]]:
    """Return a strategy of expressions and their values."""
    leaves = some.sampled_from([("yes", True), ("no", False), ("number == 5", True), ("many == 9", False)])

    def joined(inner: some.SearchStrategy[tuple[str, bool]]) -> some.SearchStrategy[tuple[str, bool]]:
        pairs = some.tuples(inner, inner)
        return (
            pairs.map(lambda pair: (f"({pair[0][0]}) and ({pair[1][0]})", pair[0][1] and pair[1][1]))
            | pairs.map(lambda pair: (f"({pair[0][0]}) or ({pair[1][0]})", pair[0][1] or pair[1][1]))
            | inner.map(lambda one: (f"not ({one[0]})", not one[1]))
        )

    return some.recursive(leaves, joined, max_leaves=12)


@given(_trees())
def test_an_expression_means_what_its_parts_mean(tree: tuple[str, bool]) -> None:
    assert holds(tree[0]) is tree[1]


@given(some.text(alphabet=some.characters(codec="utf-8"), max_size=30))
def test_every_text_can_be_written(text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'a.b == "{escaped}"', lambda path: FrameField(str, lambda frame: [frame]))(text)


# fields of real frames


def keyed(key: str, **properties: str) -> bytes:
    """Build an entry of one message with a key."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, partition_key=key)
    metadata.properties.extend(pb.KeyValue(key=name, value=value) for name, value in properties.items())
    return entry.build(metadata, b"payload")


def batched(*messages: tuple[str, bytes]) -> bytes:
    """Build a compressed batch of messages with keys."""
    packed = batch.pack((pb.SingleMessageMetadata(partition_key=key, payload_size=0), value) for key, value in messages)
    metadata = pb.MessageMetadata(
        producer_name="p",
        sequence_id=0,
        publish_time=1,
        num_messages_in_batch=len(messages),
        compression=pb.ZLIB,
        uncompressed_size=len(packed),
    )
    return entry.build(metadata, compress(pb.ZLIB, packed))


@pytest.fixture
async def producing(faults: Faults, wire: Wire) -> Wire:
    await wire.producer()
    return wire


ENTRIES = {"keyed": keyed("k", color="red"), "batch": batched(("a", b"one"), ("b", b"two")), "plain": plain(b"three")}


@pytest.mark.parametrize(
    ("when", "matching"),
    [
        ('metadata.partition_key == "k"', {"keyed"}),
        ('metadata.partition_key != "k"', {"batch", "plain"}),
        ('metadata.properties.color == "red"', {"keyed"}),
        ('metadata.properties["color"] startswith "r"', {"keyed"}),
        ('metadata.properties.shape == "red"', set()),
        ("metadata.num_messages_in_batch == 2", {"batch"}),
        ('metadata.compression == "ZLIB"', {"batch"}),
        ('message.partition_key in ["b", "k"]', {"batch", "keyed"}),
        ('message.value contains "two"', {"batch"}),
        ("message.payload_size == 5", {"plain"}),
        ("payload_size == 7", {"keyed"}),
        ("body.num_messages == 1 and frame_size > 10", {"keyed", "batch", "plain"}),
        ('topic == "t" and topic matches "persistent://*" and sender == "client"', {"keyed", "batch", "plain"}),
    ],
)
async def test_the_fields_of_an_entry(faults: Faults, producing: Wire, when: str, matching: set[str]) -> None:
    rule, found = faults.observe("SEND", when=when), set[str]()
    for name, sent in ENTRIES.items():
        before = rule.hits
        await producing.publish(sent)
        if rule.hits > before:
            found.add(name)
    assert found == matching


async def test_an_entry_that_takes_long_to_take_apart_has_no_messages(faults: Faults, producing: Wire) -> None:
    """The frame cannot wait for a thread, and the step of the event loop must stay short."""
    rule, found = faults.observe("SEND", when='message.value contains "o"'), []
    few, many = (batched(*[("k", b"o")] * count) for count in (batch.MOST_AT_ONCE, batch.MOST_AT_ONCE + 1))
    small, large = (
        plain(compress(pb.ZLIB, b"o" * size), compression=pb.ZLIB, uncompressed_size=size)
        for size in (compression.MOST_AT_ONCE, compression.MOST_AT_ONCE + 1)
    )
    for sent in (few, many, small, large, plain(b"o" * (compression.MOST_AT_ONCE + 1))):
        before = rule.hits
        await producing.publish(sent)
        found.append(rule.hits > before)
    assert found == [True, False, True, False, True]


async def test_the_fields_of_a_command(faults: Faults, wire: Wire) -> None:
    shared = faults.observe("SUBSCRIBE", when='body.subType == "Shared" and body.durable')
    failover = faults.observe("SUBSCRIBE", when='body.subType == "Failover"')
    anything = faults.observe("*", when='command in ["SUBSCRIBE", "FLOW"] and has body.consumer_id')
    await wire.subscribe(type=Failover)
    await wire.flow()
    await wire.alive()
    assert (shared.hits, failover.hits, anything.hits) == (0, 1, 2)


async def test_a_field_inside_a_repeated_message_matches_when_one_value_does(faults: Faults, producing: Wire) -> None:
    await producing.subscribe()
    first, second, third = await producing.publish(*[plain(b"a")] * 3)
    rule = faults.observe("ACK", when=f"body.message_id.entryId == {second.entry_id}")
    await producing.ack(first, second)
    await producing.ack(third)
    assert rule.hits == 1


@pytest.mark.parametrize(
    ("command", "when", "error"),
    [
        (
            "SEND",
            "metadata.partition_kye == 'a'",
            "there is no partition_kye; did you mean partition_key or null_partition_key?",
        ),
        ("SEND", "body.sequence == 1", "there is no sequence; did you mean sequence_id?"),
        ("SEND", "metdata.partition_key == 'a'", "there is no metdata; did you mean metadata?"),
        ("SUBSCRIBE", "body.subType == 'Failver'", "there is no 'Failver'; did you mean Failover?"),
        ("LOOKUP", "metadata.partition_key == 'a'", "LOOKUP has no metadata: SEND and MESSAGE have"),
        ("*", "body.consumer_di == 1", "there is no consumer_di; did you mean consumer_id or consumer_type?"),
        ("*", "body.metadata == 1", "a field is wanted: one of key, value, or a key"),
        ("SEND", "topic.name == 'a'", "topic has no field name"),
        ("SEND", "metadata.partition_key.x == 'a'", "partition_key has no field x"),
    ],
)
async def test_a_misspelled_name_is_an_error(faults: Faults, command: str, when: str, error: str) -> None:
    with pytest.raises(FaultError, match=re.escape(error)) as raised:
        faults.add(Drop(), command, when=when)
    assert str(raised.value).startswith("when: at character ")
    assert not faults.rules


async def test_a_damaged_entry_has_no_metadata(faults: Faults, producing: Wire) -> None:
    present = faults.observe("SEND", when="has metadata.sequence_id or has message.value or has payload_size")
    absent = faults.observe("SEND", when="not has metadata.sequence_id")
    await producing.write(producing.sends(b"\x00\x00\x00\x09broken"))
    await producing.rest()
    assert (present.hits, absent.hits) == (0, 1)
