"""Which Avro schema reads which, compared with what Java says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.schema.definition import read_definition
from pulsarium.broker.model.schema.resolution import can_read
from tests.broker.model.schema.recorded import READ

DEFINITIONS = [read_definition(line["text"].encode()) for line in READ]
NUMBERS = st.integers(0, len(READ) - 1)


@pytest.mark.req("B-31")
@pytest.mark.parametrize("line", READ, ids=range(len(READ)))
def test_what_it_reads(line: dict[str, Any]) -> None:
    reader = DEFINITIONS[READ.index(line)]
    assert [number for number, writer in enumerate(DEFINITIONS) if can_read(reader, writer)] == line["reads"]


@given(NUMBERS, NUMBERS)
def test_inside_of_others(one: int, other: int) -> None:
    """What holds for two schemas holds for arrays, maps and fields of them."""
    reader, writer = READ[one]["text"], READ[other]["text"]
    expected = other in READ[one]["reads"]
    for around in ('{"type":"array","items":%s}', '{"type":"map","values":%s}'):
        pair = [read_definition((around % text).encode()) for text in (reader, writer)]
        assert can_read(pair[0], pair[1]) is expected


def test_a_default_that_is_none() -> None:
    """Java puts the value of the default into its grammar, and finds that it is none."""
    text = '{"type":"record","name":"R","fields":[%s]}'
    empty = read_definition((text % "").encode())
    for kind, default, fits in (
        ('"int"', "1", True),
        ('"int"', '"x"', False),
        ('"int"', str(2**31), False),
        ('"long"', str(2**31), True),
        ('"boolean"', "false", True),
        ('"boolean"', "0", False),
        ('"double"', "1", True),
        ('"double"', '"1"', False),
        ('"null"', "null", True),
        ('"string"', "1", False),
        ('["null","int"]', "null", True),
        ('{"type":"array","items":"int"}', "[1]", True),
        ('{"type":"array","items":"int"}', '["x"]', False),
        ('{"type":"map","values":"int"}', '{"a":1}', True),
        ('{"type":"map","values":"int"}', "[]", False),
        ('{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}', '{"x":1}', True),
        ('{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}', "{}", False),
    ):
        reader = read_definition((text % f'{{"name":"a","type":{kind},"default":{default}}}').encode())
        assert can_read(reader, empty) is fits, (kind, default)
