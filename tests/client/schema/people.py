"""Records that tests write and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from pulsarium.client import AvroFloat, AvroInt, AvroSchema, JsonSchema

BOTH: list[Callable[..., Any]] = [AvroSchema, JsonSchema]


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Home:
    street: str
    number: AvroInt | None = None


@dataclass
class Person:
    name: str
    age: AvroInt
    wealth: int
    height: float
    weight: AvroFloat
    is_here: bool
    picture: bytes
    born: datetime
    color: Color
    homes: dict[str, Home]
    names: list[str] = field(default_factory=list)
    main: Home | None = None
    favourite: Color | None = None
    nested: list[list[AvroInt | None]] = field(default_factory=list)


ADA = Person(
    name="Ada Ä",
    age=36,
    wealth=2**40,
    height=1.65,
    weight=55.5,
    is_here=True,
    picture=b"\x00\xff",
    born=datetime(1815, 12, 10, tzinfo=UTC),
    color=Color.BLUE,
    homes={"ä": Home("St James's Square", 12), "": Home("x")},
    names=["Ada", "Lovelace"],
    main=Home("y"),
    nested=[[1, None], []],
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
ints = st.integers(-(2**31), 2**31 - 1)
homes = st.builds(Home, street=texts, number=st.none() | ints)
people = st.builds(
    Person,
    name=texts,
    age=ints,
    wealth=st.integers(-(2**63), 2**63 - 1),
    height=st.floats(allow_nan=False),
    weight=st.floats(width=32, allow_nan=False),
    is_here=st.booleans(),
    picture=st.binary(),
    born=st.datetimes(timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    ),
    color=st.sampled_from(Color),
    homes=st.dictionaries(texts, homes),
    names=st.lists(texts),
    main=st.none() | homes,
    favourite=st.none() | st.sampled_from(Color),
    nested=st.lists(st.lists(st.none() | ints)),
)
