"""Single types of a record: what fits, in each form."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from pulsarium.client.schema.nodes import (
    Binary,
    DataForm,
    Items,
    Misfit,
    Moment,
    Nullable,
    Real,
    Scalar,
    SchemaNode,
    Values,
    from_milliseconds,
    to_milliseconds,
)

TEXTS = Scalar("string", str)


@pytest.mark.parametrize(
    ("node", "value", "forms"),
    [
        (Binary(), b"\xff", [b"\xff", "/w==", "\xff"]),
        (Real("double"), 1.5, [1.5, 1.5, 1.5]),
        (Real("double"), -math.inf, [-math.inf, "-Infinity", "-Infinity"]),
        (Moment(), datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), [2000, 2000, 2000]),
        (Items(Nullable(Binary())), [None, b"a"], [[None, b"a"], [None, "YQ=="], [None, "a"]]),
        (Values(Binary()), {"x": b"a"}, [{"x": b"a"}, {"x": "YQ=="}, {"x": "a"}]),
    ],
)
def test_each_type_has_its_form_in_avro_and_json(node: SchemaNode, value: object, forms: list[object]) -> None:
    for form, expected in zip(DataForm, forms, strict=True):
        assert node.dump(value, form) == expected
        if form is not DataForm.DEFAULT:
            assert node.load(expected, form) == value
    assert node.load(forms[-1], DataForm.AVRO) == value  # as an Avro library gives a default


def test_nodes_know_their_definitions() -> None:
    assert Nullable(Items(TEXTS)).definition == ["null", {"type": "array", "items": "string"}]
    assert Nullable(Values(TEXTS), null_first=False).definition == [{"type": "map", "values": "string"}, "null"]


def test_the_error_names_the_place_of_the_misfit() -> None:
    with pytest.raises(Misfit) as caught:
        Items(Values(Items(TEXTS))).dump([{}, {"a": ["x", 3]}], DataForm.JSON)
    assert str(caught.value) == "[1]['a'][1]: str, not int"
    assert str(Misfit("no").inside("[1]").inside(".b").inside(".a")) == "a.b[1]: no"


@pytest.mark.parametrize(("seconds", "milliseconds"), [(2.5, 2500), (0.0, 0), (-1.999, -1), (-1.0, -1000)])
def test_seconds_that_java_wrote(seconds: float, milliseconds: int) -> None:
    assert Moment().load(seconds, DataForm.JSON) == from_milliseconds(milliseconds)
    with pytest.raises(Misfit):
        Moment().load(seconds, DataForm.AVRO)


@pytest.mark.parametrize("seconds", [math.nan, -math.inf, 1e300])
def test_seconds_that_are_no_moment(seconds: float) -> None:
    with pytest.raises(Misfit, match="outside the years"):
        Moment().load(seconds, DataForm.JSON)


def test_moments_are_milliseconds_and_back() -> None:
    zone = timezone(timedelta(hours=1))
    assert to_milliseconds(datetime(1970, 1, 1, 1, 0, 0, 1999, tzinfo=zone)) == 1
    assert to_milliseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert from_milliseconds(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    for beyond in (2**62, -(2**62), 10**400):
        with pytest.raises(Misfit, match="outside the years"):
            from_milliseconds(beyond)
    with pytest.raises(Misfit, match="without a time zone"):
        to_milliseconds(datetime(1970, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("value", [True, "x", None, 3.5])
def test_only_numbers_are_numbers(value: object) -> None:
    with pytest.raises(Misfit, match="int, not"):
        Scalar("long", int).dump(value, DataForm.AVRO)
    if value != 3.5:
        with pytest.raises(Misfit, match="float, not"):
            Real("double").load(value, DataForm.AVRO)
