"""Tolerated differences are documented, and are no wider than their text."""

from __future__ import annotations

import pytest

from pulsarium.broker.web.admin.topic.internal_stats import NO_CURSOR
from yardsticks.differential.tolerances import MOMENTS, READER, SEEKER, TOLERANCES, Moment, Tolerance, moment, needed
from yardsticks.replay.expectations import DIFFERENCES

NO_SET = "ackSet is null"


@pytest.mark.parametrize("tolerance", [*TOLERANCES, *MOMENTS], ids=lambda each: each.name)
def test_its_reason_stands_in_the_docs(tolerance: Tolerance | Moment) -> None:
    assert tolerance.words
    assert tolerance.words in " ".join(DIFFERENCES.read_text().split())


def test_a_fenced_subscription_is_a_known_moment() -> None:
    fenced = 'ERROR {"request_id": 1, "error": "ServiceNotReady", "message": "Subscription is fenced"}'
    let_in = 'SUCCESS {"request_id": 1}'
    assert moment([let_in], [fenced]) == "a reader's subscription that is being closed"
    assert moment([let_in], ['ERROR {"request_id": 1, "error": "ServiceNotReady", "message": "else"}']) is None
    assert moment(['SUCCESS {"request_id": 2}'], [fenced]) is None


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
        (
            "reads that wait",
            ["/cursors/s/waitingReadOp True", "/waitingCursorsCount 1"],
            ["/cursors/s/waitingReadOp False", "/waitingCursorsCount 0"],
        ),
        (
            "reads that wait",
            ["/cursors/s/waitingReadOp False", "/waitingCursorsCount 0"],
            ["/cursors/s/waitingReadOp False", "/waitingCursorsCount 1"],
        ),
        ("ack set of a read position", ["/cursors/s/readPosition L0:3"], [f"/cursors/s/readPosition L0:3 ({NO_SET})"]),
        ("end of topic said again", [], ['REACHED_END_OF_TOPIC {"consumer_id": 0} again']),
        ("cursors of readers that sought", ["status 200"], ["status 200", f"/cursors/{SEEKER}/state NoLedger"]),
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
def test_each_tolerance_excuses_its_difference(name: str, ours: list[str], real: list[str]) -> None:
    assert needed(ours, real) == [name]


@pytest.mark.parametrize(
    ("ours", "real"),
    [
        pytest.param([], ['REACHED_END_OF_TOPIC {"consumer_id": 0}'], id="an end of topic that is not said"),
        pytest.param(['REACHED_END_OF_TOPIC {"consumer_id": 0}'], [], id="an end of topic that only ours says"),
        pytest.param(
            ["/consumers/0/availablePermits 3", "/consumers/0/consumerName a"],
            ["/consumers/0/availablePermits 1", "/consumers/0/consumerName a"],
            id="permits",
        ),
        pytest.param(
            [
                *("/subscriptions/s/consumers/0/availablePermits 1", "/subscriptions/s/consumers/0/consumerName a"),
                *("/subscriptions/s/consumers/1/availablePermits 3", "/subscriptions/s/consumers/1/consumerName b"),
            ],
            [
                *("/subscriptions/s/consumers/0/availablePermits 3", "/subscriptions/s/consumers/0/consumerName a"),
                *("/subscriptions/s/consumers/1/availablePermits 1", "/subscriptions/s/consumers/1/consumerName b"),
            ],
            id="swapped permits",
        ),
        pytest.param(
            ["/ledgers/0/entries 1", "/ledgers/1/entries 2"],
            ["/ledgers/0/entries 2", "/ledgers/1/entries 1"],
            id="order of ledgers",
        ),
        pytest.param(["status 200"], ["status 200", f"/cursors/{READER}/state NoLedger"], id="a reader's cursor"),
        pytest.param(
            [f"/cursors/{SEEKER}/readPosition L0:1"], [f"/cursors/{SEEKER}/readPosition L0:2"], id="a seeker's position"
        ),
        pytest.param(["status 200", f"/cursors/{SEEKER}/state NoLedger"], ["status 200"], id="a cursor that stays"),
        pytest.param(["status 500", "/reason a"], ["status 500", "/reason b"], id="another wording of a 500"),
        pytest.param(["status 404", "/reason "], ["status 404", "/reason b"], id="an error without words"),
        pytest.param(["/cursors/s/state Open"], ["/cursors/s/state NoLedger"], id="a ledger that was not needed"),
        pytest.param(["/cursors/s/state Closed"], ["/cursors/s/state Open"], id="another state"),
        pytest.param(["/cursors/s/cursorLedgerLastEntry 4"], ["/cursors/s/cursorLedgerLastEntry -1"], id="last entry"),
        pytest.param(["/cursors/s/active True"], ["/cursors/s/active False"], id="an active cursor"),
        pytest.param(["/properties/index 4"], ["/properties/index 0"], id="a wrong count"),
        pytest.param(
            ["/cursors/s/readPosition L0:-1"], ["/cursors/s/readPosition L0:0"], id="an entry before the first"
        ),
        pytest.param(
            ["/cursors/s/waitingReadOp False"], ["/cursors/s/waitingReadOp True"], id="a read that is missing"
        ),
        pytest.param(["/waitingCursorsCount 1"], ["/waitingCursorsCount 0"], id="a wrong count of reads"),
        pytest.param(
            ["/subscriptions/s/activeConsumerName a", "/subscriptions/s/consumers/0/consumerName b"],
            ["/subscriptions/s/consumers/0/consumerName b"],
            id="an active consumer that left ours",
        ),
        pytest.param(
            ['SEND_RECEIPT {"highest_sequence_id": 7}'], ['SEND_RECEIPT {"highest_sequence_id": 0}'], id="a sequence id"
        ),
    ],
)
def test_no_tolerance_excuses_other_differences(ours: list[str], real: list[str]) -> None:
    assert needed(ours, real) is None


@pytest.mark.parametrize("field", sorted({*NO_CURSOR, "markDeletePosition", "readPosition"}))
def test_every_value_of_a_readers_cursor_counts(field: str) -> None:
    ours, real = f"/cursors/{READER}/{field} 7", f"/cursors/{READER}/{field} 8"
    assert needed(["status 200", ours], ["status 200", real]) is None
