"""Scenarios of transactions over segments."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of


@scenario(
    "Transactions",
    "Commit makes all buffered publishes visible, across segments.",
    "client API 6",
    bug="without send.transaction",
)
def transaction_commit_over_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    producer, consumer = stage.producer(topic), stage.queue(topic)
    transaction = stage.scalable_transaction()
    stage.send(producer, keyed(0, 20, keys=20), transaction=transaction)
    stage.nothing(consumer)
    stage.ask("commit", transaction=transaction)
    stage.receive_all(consumer, values_of(keyed(0, 20, keys=20)), acknowledge=True)


@scenario("Transactions", "Abort discards the publishes.", "client API 6", bug="without send.transaction")
def transaction_abort_discards(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    producer, consumer = stage.producer(topic), stage.queue(topic)
    transaction = stage.scalable_transaction()
    stage.send(producer, keyed(0, 10), transaction=transaction)
    stage.ask("abort", transaction=transaction)
    stage.send(producer, keyed(10, 4))
    stage.receive_all(consumer, values_of(keyed(10, 4)), acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "Transactions",
    "An acknowledgment within a transaction is durable after the commit.",
    "client API 6",
    bug="instead commit abort",
)
def transaction_commits_acknowledgments(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.send(stage.producer(topic), keyed(0, 6))
    consumer = stage.queue(topic)
    transaction = stage.scalable_transaction()
    for each in stage.receive_all(consumer, values_of(keyed(0, 6))):
        stage.acknowledge(consumer, each, transaction=transaction)
    stage.ask("commit", transaction=transaction)
    stage.close(consumer)
    stage.nothing(stage.queue(topic))


@scenario(
    "Transactions",
    "A split in an open transaction adds the successors as partitions.",
    "wire protocol 8.2",
    bug="ignores commit",
)
def transaction_across_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer, consumer = stage.producer(topic), stage.queue(topic)
    transaction = stage.scalable_transaction()
    stage.send(producer, keyed(0, 5), transaction=transaction)
    stage.side.split(topic, 0)
    stage.send(producer, keyed(5, 5), transaction=transaction)
    stage.ask("commit", transaction=transaction)
    stage.receive_all(consumer, values_of(keyed(0, 10)), acknowledge=True)


@scenario(
    "Transactions",
    "Coordinators are found by the assignment watch, where the broker supports the watch.",
    "wire protocol 8.1",
    bug="ignores transaction",
)
def transaction_coordinators_are_watched(stage: Stage) -> None:
    transaction = stage.scalable_transaction()
    stage.ask("abort", transaction=transaction)
    stage.that(stage.history().of("WATCH_TC_ASSIGNMENTS"), "the client did not open the watch of coordinators")


@scenario(
    "Transactions", "Commit of an ended transaction fails with a typed error.", "client API 6", bug="succeeds commit"
)
def transaction_ends_once(stage: Stage) -> None:
    transaction = stage.scalable_transaction()
    stage.ask("abort", transaction=transaction)
    stage.refused(["TransactionConflict", "NotFound", "AlreadyClosed"], "commit", transaction=transaction)
