"""Forms of skipByMessageIds' body."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.web.admin.topic.skip_by_message_ids import read_message_ids, skip_entries
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.proto.message_id import MessageId
from tests.broker.web.admin.skipped import encoded, format_1, triplet

AT = Position(7, 3)
SAMPLES = ["CLlgEAQwAA==", "CLlgEAYwAA=="]


def read(body: Any) -> list[tuple[int, int, int | None]]:
    return [(i.ledger_id, i.entry_id, i.batch_index if i.batch_index >= 0 else None) for i in read_message_ids(body)]


def refused(body: Any) -> str:
    with pytest.raises(AdminError) as caught:
        read_message_ids(body)
    assert caught.value.status == 400
    return caught.value.reason


AS_GO_WRITES = MessageId(7, 3).to_data()
AS_GO_WRITES.batch_index = AS_GO_WRITES.partition = -1
WHOLE, OF_SAMPLES = [(7, 3, None)], [(12345, 4, None), (12345, 6, None)]


def proving(*rows: str) -> Any:
    return pytest.mark.req(*rows)


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        pytest.param(
            format_1([{"ledgerId": 12345, "entryId": 100}, {"ledgerId": 12346, "entryId": 200, "batchIndex": 5}]),
            [(12345, 100, None), (12346, 200, 5)],
            marks=proving("S423-03"),
        ),
        # The proposal's sample; a batch size of 0 is an unknown size.
        pytest.param(SAMPLES, OF_SAMPLES, marks=proving("S423-07", "S423-08")),
        ([sample.rstrip("=") for sample in SAMPLES], OF_SAMPLES),
        pytest.param([encoded(AT, batch_index=1)], [(7, 3, 1)], marks=proving("S423-09")),
        ([encoded(AT, batch_index=1, batch_size=5)], [(7, 3, 1)]),
        ([encoded(AT, batch_size=5)], WHOLE),
        ([base64.b64encode(AS_GO_WRITES.SerializeToString()).decode()], WHOLE),
        pytest.param({"type": "byteArray", "messageIds": SAMPLES}, OF_SAMPLES, marks=proving("S423-11")),
        ({"type": "BYTEARRAY", "messageIds": SAMPLES}, OF_SAMPLES),
        ({"messageIds": SAMPLES}, OF_SAMPLES),
        ({"type": None, "messageIds": SAMPLES}, OF_SAMPLES),
        ({"type": "", "messageIds": SAMPLES}, OF_SAMPLES),
        ({"type": "MESSAGEID", "messageIds": [triplet(AT)]}, WHOLE),
        pytest.param(format_1([None, triplet(AT), None]), WHOLE, marks=proving("S423-21")),
        ([None, encoded(AT)], WHOLE),
        pytest.param([], [], marks=proving("S423-22")),
        ([None], []),
        ({"messageIds": []}, []),
        (format_1([]), []),
        # Strings of digits are taken as numbers, in each field.
        (format_1([{"ledgerId": "124", "entryId": "46", "batchIndex": "2"}]), [(124, 46, 2)]),
        (format_1([{**triplet(AT), "batchIndex": None, "partitionIndex": -1}]), WHOLE),
    ],
)
def test_each_form_of_the_body_is_read(body: Any, ids: list[tuple[int, int, int | None]]) -> None:
    assert read(body) == ids


@pytest.mark.req("S423-13", "S423-14", "S423-16", "SREV-07")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"ledgerId": "abc"}, "invalid ledgerId 'abc'"),
        ({"ledgerId": "-1"}, "invalid ledgerId '-1'"),
        ({"ledgerId": " 1"}, "invalid ledgerId ' 1'"),
        ({"ledgerId": "\u0661"}, "invalid ledgerId"),  # a digit of another script
        ({"ledgerId": ""}, "invalid ledgerId ''"),
        ({"ledgerId": True}, "invalid ledgerId True"),
        ({"ledgerId": -1}, "invalid ledgerId -1"),
        ({"ledgerId": 2**63}, "invalid ledgerId 9223372036854775808"),
        ({"ledgerId": None}, "missing ledgerId"),
        ({"entryId": 1.5}, "invalid entryId 1.5"),
        ({"entryId": [1]}, "invalid entryId [1]"),
        ({"entryId": None}, "missing entryId"),
        ({"batchIndex": -1}, "invalid batchIndex -1"),
        ({"batchIndex": "x"}, "invalid batchIndex 'x'"),
        ({"batchIndex": 2**31}, "invalid batchIndex 2147483648"),
    ],
)
def test_numbers_that_are_none_are_refused_by_place(fields: dict[str, Any], why: str) -> None:
    assert f"messageIds[1]: {why}" in refused(format_1([triplet(AT), {**triplet(AT, 0), **fields}]))


@pytest.mark.req("S423-18")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("not_base64!!", "not base64"),
        ("CLlgEAQwAA=", "not base64"),
        ("CLlgE", "not base64"),
        ("\u00e4", "not base64"),
        ("", "not a serialized message id"),
        ("AAAA", "not a serialized message id"),
        ("CLlg", "not a serialized message id"),  # a ledger without an entry
        (encoded(Position(-1, -1)), "-1:-1:-1 names no message"),
        (encoded(AT, batch_index=-2), "names no message"),
        (12345, "not a text in base64"),
        (triplet(AT), 'objects need "type":"messageId"'),
    ],
)
def test_bytes_that_are_no_id_are_refused(value: Any, why: str) -> None:
    for body in ([value], {"type": "byteArray", "messageIds": [value]}):
        assert why in refused(body)


@pytest.mark.req("S423-19", "S423-20", "SREV-03")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "empty body"),
        (5, "neither an object nor an array"),
        ("CLlgEAQwAA==", "neither an object nor an array"),
        ({}, "missing messageIds"),
        ({"12345": "100"}, "missing messageIds"),  # the draft's map
        ({"messageIds": {"12345": "100"}}, "messageIds is not an array"),
        ({"type": "messageId", "messageIds": triplet(AT)}, "messageIds is not an array"),
        ({"messageIds": None}, "messageIds is not an array"),
        ({"messageIds": "CLlgEAQwAA=="}, "messageIds is not an array"),
        ({"type": "map", "messageIds": []}, "unsupported type 'map'"),
        ({"type": 5, "messageIds": []}, "unsupported type 5"),
        ({"type": "messageId", "messageIds": ["7:3"]}, "messageIds[0]: not an object with ledgerId and entryId"),
        (format_1([{"ledgerId": 7}]), "messageIds[0]: missing entryId"),
        (format_1([{"entryId": 3}]), "messageIds[0]: missing ledgerId"),
    ],
)
def test_bodies_of_another_form_are_refused(body: Any, why: str) -> None:
    assert refused(body) == f"Invalid skipByMessageIds payload: {why}"


def test_a_long_value_is_not_repeated() -> None:
    assert len(refused(format_1([{"ledgerId": "x" * 10_000, "entryId": 1}]))) < 200
    assert len(refused({"type": "x" * 10_000, "messageIds": []})) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(SAMPLES),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["type", "messageIds", "ledgerId", "entryId", "batchIndex"]) | st.text(max_size=2), inner
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_anything_is_read_or_refused(body: Any) -> None:
    with suppress(AdminError):
        assert all(each.ledger_id >= 0 <= each.entry_id for each in read_message_ids(body))


# entries that a topic skips


def entries(*ids: MessageId, partition: int = -1) -> list[tuple[int, int, Any]]:
    return [(each.ledger_id, each.entry_id, each.batch_indexes) for each in skip_entries(ids, partition)]


@pytest.mark.req("S423-46", "S423-48")
def test_parts_of_an_entry_are_put_together_unless_all_of_it_goes() -> None:
    parts = [MessageId(7, 3, batch_index=index) for index in (3, 1, 3)]
    assert entries(*parts, MessageId(7, 4)) == [(7, 3, (1, 3)), (7, 4, None)]
    for ids in ([*parts, MessageId(7, 3)], [MessageId(7, 3), *parts], [parts[0], MessageId(7, 3), parts[1]]):
        assert entries(*ids) == [(7, 3, None)]


@pytest.mark.req("S423-10")
@pytest.mark.parametrize(("partition", "wanted"), [(0, False), (1, True), (-1, True)])
def test_an_id_of_another_partition_is_passed_over(partition: int, wanted: bool) -> None:
    assert bool(entries(MessageId(7, 3, partition=1), partition=partition)) is wanted
    assert entries(MessageId(7, 3), partition=partition) == [(7, 3, None)]
