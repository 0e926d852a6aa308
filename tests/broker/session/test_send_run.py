"""SENDs in a run have the numbers of their commands, also where a command is guessed from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.session import gate
from pulsarium.broker.session.gate import Gate, Gated, SendRun
from pulsarium.proto.commands import parse_plain_send
from pulsarium.proto.generated.PulsarApi_pb2 import CommandSend
from pulsarium.proto.numbers import NO_SEQUENCE
from tests.broker.wire import Type, command


class Topic:
    append_run = "append"


class Publisher:
    """A producer that keeps what it publishes."""

    topic = Topic()

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.got: list[PendingPublish] = []

    def publish(self, pending: PendingPublish) -> None:
        self.got.append(pending)

    def publish_run(self, run: Sequence[PendingPublish], append_run: object) -> None:
        self.got += run


class Connection:
    """The part of a session and its gate that a run needs, and the outgoing side too."""

    tap = None
    takes_runs = True

    def __init__(self) -> None:
        self.outgoing = self
        self.producers = {producer_id: Publisher(producer_id) for producer_id in (0, 1, 300)}

    def publish_started(self, count: int) -> None: ...


def run_of(connection: Connection) -> SendRun:
    return SendRun(cast(Gated, connection), cast(Gate, connection))


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 300]),
        st.sampled_from([1, 1, 1, 1, 0, -1, 127, 128, 2**40]),  # from one sequence id to the next
        st.sampled_from([{}, {}, {}, {"num_messages": 3}, {"highest_sequence_id": 7}, {"highest_sequence_id": 2**50}]),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=40,
)


@given(st.sampled_from([0, 100, 126, 2**14 - 3]), STEPS)
def test_a_run_has_the_numbers_of_its_commands(first: int, steps: list[tuple[int, int, dict[str, int], bool]]) -> None:
    connection, sequence_id = Connection(), first
    run = run_of(connection)
    expected: dict[int, list[tuple[int, int, int, bytes]]] = {0: [], 1: [], 300: []}
    for number, (producer_id, step, rest, ends) in enumerate(steps):
        sequence_id = max(sequence_id + step, 0)
        fields = {"producer_id": producer_id, "sequence_id": sequence_id, **rest}
        sent, entry = command(Type.SEND, **fields).send, b"%d" % number
        assert run.takes(command(Type.SEND, **fields).SerializeToString(), entry)
        highest = sent.highest_sequence_id if sent.highest_sequence_id >= sequence_id else NO_SEQUENCE
        expected[producer_id].append((sequence_id, highest, sent.num_messages, entry))
        if ends:
            run.publish()
    run.publish()
    assert expected == {
        producer_id: [(each.sequence_id, each.highest_sequence_id, each.messages, each.entry) for each in publisher.got]
        for producer_id, publisher in connection.producers.items()
    }


def test_successive_sends_are_hardly_ever_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    run, parsed = run_of(Connection()), list[bytes]()

    def parse(data: bytes, into: CommandSend) -> bool:
        parsed.append(data)
        return parse_plain_send(data, into)

    monkeypatch.setattr(gate, "parse_plain_send", parse)
    for sequence_id in range(256):
        assert run.takes(command(Type.SEND, producer_id=0, sequence_id=sequence_id).SerializeToString(), b"")
    assert len(parsed) == 3  # the first two, and where the number takes a carry
