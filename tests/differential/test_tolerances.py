"""What may differ is documented, and no wider than it says."""

from __future__ import annotations

import pytest

from tests.conformance.catalogue import DIFFERENCES

from .tolerances import MOMENTS, TOLERANCES, Moment, Tolerance, moment, needed


@pytest.mark.parametrize("tolerance", [*TOLERANCES, *MOMENTS], ids=lambda each: each.name)
def test_its_reason_stands_in_the_docs(tolerance: Tolerance | Moment) -> None:
    assert tolerance.words
    assert tolerance.words in " ".join(DIFFERENCES.read_text().split())


def test_moments() -> None:
    fenced = 'ERROR {"request_id": 1, "error": "ServiceNotReady", "message": "Subscription is fenced"}'
    assert moment(["SUCCESS {}", fenced]) == "a reader's subscription that is being closed"
    assert moment(["SUCCESS {}", 'ERROR {"error": "ServiceNotReady", "message": "else"}']) is None


def test_equal_answers_need_none() -> None:
    assert needed(["SUCCESS {}"], ["SUCCESS {}"]) == []


def test_other_differences_stay() -> None:
    assert needed(["SUCCESS {}"], ["ERROR {}"]) is None
    assert needed(["A {}", "B {}"], ["B {}", "A {}"]) is None
    assert needed(["SUCCESS {}"], []) is None


def test_an_active_consumer_that_is_there_has_to_be_named() -> None:
    consumer = "/subscriptions/s/consumers/0/consumerName a"
    assert needed([consumer], ["/subscriptions/s/activeConsumerName a", consumer]) is None


def test_a_tolerance_that_is_not_enough() -> None:
    ours = ['SEND_RECEIPT {"sequence_id": 1, "highest_sequence_id": 0}']
    real = ['SEND_RECEIPT {"sequence_id": 2, "highest_sequence_id": 18446744073709551615}']
    assert needed(ours, real) is None


@pytest.mark.parametrize(
    ("name", "ours", "real"),
    [
        (
            "highest sequence id of a receipt",
            ['SEND_RECEIPT {"highest_sequence_id": 0}'],
            ['SEND_RECEIPT {"highest_sequence_id": 18446744073709551615}'],
        ),
        ("cursor ledgers", ["/cursors/s/state NoLedger"], ["/cursors/s/state Open"]),
        ("activity of cursors", ["/cursors/s/active False"], ["/cursors/s/active True"]),
        ("count in a property", ["/properties/index -1"], ["/properties/index 0"]),
        ("read position after the earliest", ["/cursors/s/readPosition L0:0"], ["/cursors/s/readPosition L0:-1"]),
        (
            "read position after the earliest",
            ["/cursors/s/readPosition a ledger:0"],
            ["/cursors/s/readPosition a ledger:-1"],
        ),
        (
            "active consumer that left",
            ["/subscriptions/s/consumers/0/consumerName b"],
            ["/subscriptions/s/activeConsumerName a", "/subscriptions/s/consumers/0/consumerName b"],
        ),
        ("reads that wait", ["/waitingCursorsCount 1"], ["/waitingCursorsCount 0"]),
        ("order of REST lists", ["status 200", "/0 a", "/1 b"], ["status 200", "/0 b", "/1 a"]),
        (
            "order in which clients are sent away",
            ['CLOSE_PRODUCER {"producer_id": 1}', 'CLOSE_CONSUMER {"consumer_id": 0}'],
            ['CLOSE_CONSUMER {"consumer_id": 0}', 'CLOSE_PRODUCER {"producer_id": 1}'],
        ),
        ("wording of REST errors", ["status 404", "/reason a"], ["status 404", "/reason b"]),
        (
            "address in a conflict of ranges",
            ['ERROR {"message": "Range conflict with consumer Consumer{consumerName=c, address=ADDRESS}"}'],
            ['ERROR {"message": "Range conflict with consumer Consumer{consumerName=c, address=[id: 0x1] x}"}'],
        ),
    ],
)
def test_what_each_is_for(name: str, ours: list[str], real: list[str]) -> None:
    assert needed(ours, real) == [name]
