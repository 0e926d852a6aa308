"""Names and times that a broker makes up are replaced, and all other values are compared."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pulsarium.proto import entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, command, plain
from yardsticks.differential.normal import Names, frame_facts, rest_facts
from yardsticks.differential.tally import Tally


def receipt(ledger: int, entry: int) -> pb.BaseCommand:
    where = {"ledgerId": ledger, "entryId": entry}
    return command(Type.SEND_RECEIPT, producer_id=3, sequence_id=1, message_id=where)


def test_ledgers_are_called_by_the_order_of_their_entries() -> None:
    ours, real = Names(), Names()
    for numbers, names in (((5, 9), ours), ((70, 80), real)):
        for number in numbers:
            frame_facts(receipt(number, 0), b"", names)
    assert frame_facts(receipt(9, 4), b"", ours) == frame_facts(receipt(80, 4), b"", real)
    assert frame_facts(receipt(5, 4), b"", ours) != frame_facts(receipt(80, 4), b"", real)
    assert ours.text("position 9:4, or 33:1") == "position L1:4, or 33:1"


def test_a_ledger_without_entries_gets_no_name() -> None:
    names = Names()
    frame_facts(receipt(5, 2**64 - 1), b"", names)
    assert '"L0"' in frame_facts(receipt(6, 0), b"", names)[1]


def test_no_ledger_stays_none() -> None:
    _, fact = frame_facts(receipt(2**64 - 1, 2**64 - 1), b"", Names())
    assert f'"ledgerId": {2**64 - 1}' in fact


def test_a_frame_belongs_to_the_stream_of_its_producer_consumer_or_watcher() -> None:
    assert frame_facts(receipt(1, 1), b"", Names())[0] == "producer 3"
    assert frame_facts(command(Type.REACHED_END_OF_TOPIC, consumer_id=7), b"", Names())[0] == "consumer 7"
    assert frame_facts(command(Type.WATCH_TOPIC_UPDATE, watcher_id=7), b"", Names())[0] == "watcher 7"
    assert frame_facts(command(Type.PRODUCER_SUCCESS, request_id=7), b"", Names())[0] == "producers"
    assert frame_facts(command(Type.SUCCESS, request_id=7), b"", Names())[0] == ""


def test_an_entry_is_compared_byte_by_byte_but_for_the_time_a_broker_gave_it() -> None:
    message = command(Type.MESSAGE, consumer_id=0, message_id={"ledgerId": 1, "entryId": 0})

    def fact(data: bytes, index: int, time: int) -> str:
        added = pb.BrokerEntryMetadata(index=index, broker_timestamp=time)
        return frame_facts(message, entry.with_broker_metadata(data, added), Names())[1]

    assert fact(plain(b"a"), 0, 1) == fact(plain(b"a"), 0, 2)
    assert fact(plain(b"a"), 0, 1) != fact(plain(b"a"), 1, 1)
    assert fact(plain(b"a"), 0, 1) != fact(plain(b"b"), 0, 1)


def test_rest_answers_line_by_line() -> None:
    body = {"b": [1, {"ledgerId": 4}], "a": "127.0.0.1:1234", "msgRateIn": 1.5, "lastAckedTime": 5, "position": "4:-1"}
    assert rest_facts(200, body, Names()) == [
        "status 200",
        "/a ADDRESS",
        "/b 2 of them",
        "/b/0 1",
        "/b/1/ledgerId a ledger",
        "/lastAckedTime ...",
        "/msgRateIn ...",
        "/position a ledger:-1",
    ]
    assert rest_facts(204, None, Names()) == ["status 204", " None"]


@pytest.mark.parametrize("key", ["numberOfEntriesSinceFirstNotAckedMessage", "totalSize", "publishRateLimitedTimes"])
def test_counts_and_sizes_are_compared(key: str) -> None:
    assert rest_facts(200, {key: 1}, Names()) != rest_facts(200, {key: 2}, Names())


def test_times_are_compared_with_never() -> None:
    key = "lastAckedTimestamp"
    assert rest_facts(200, {key: 1}, Names()) == rest_facts(200, {key: 2}, Names())
    assert rest_facts(200, {key: 1}, Names()) != rest_facts(200, {key: 0}, Names())


def test_a_tally_survives_the_way_between_processes() -> None:
    tally = Tally(calls=Counter(GET=2), programs=3)
    tally.command(Type.SUBSCRIBE, {"subType": pb.CommandSubscribe.Failover})
    tally.command(Type.PING, {})
    there = Tally.of_json(json.loads(json.dumps(tally.as_json())))
    assert there == tally
    there.add(tally)
    assert (there.operations, there.subscriptions["Failover"], there.programs) == (8, 2, 6)
