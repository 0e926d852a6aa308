"""Scenarios of transactions on classic topics."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, scenario, texts

SOURCE = "PIP-31"


def begun(stage: Stage) -> str:
    return stage.opened("transaction", client=stage.client)


@scenario(
    "NEW_TXN",
    "Messages of a transaction are visible when it commits, and not before.",
    SOURCE,
    bug="without send.transaction",
)
def a_committed_transaction_is_visible(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    transaction = begun(stage)
    stage.send_in(producer, texts(0, 3), transaction)
    stage.nothing(consumer)
    stage.ask("commit", transaction=transaction)
    stage.receive_in_order(consumer, texts(0, 3))


@scenario("NEW_TXN", "Messages of an aborted transaction are never delivered.", SOURCE, bug="without send.transaction")
def an_aborted_transaction_is_not_delivered(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    transaction = begun(stage)
    stage.send_in(producer, ["dropped"], transaction)
    stage.ask("abort", transaction=transaction)
    stage.send(producer, ["kept"])
    stage.receive_all(consumer, ["kept"], acknowledge=True)
    stage.nothing(consumer)


@scenario("NEW_TXN", "A transaction over two topics commits on both.", SOURCE, bug="without send.transaction")
def a_transaction_over_two_topics(stage: Stage) -> None:
    topics = [stage.topic() for _ in range(2)]
    consumers = [stage.consumer(topic) for topic in topics]
    transaction = begun(stage)
    for topic in topics:
        stage.send_in(stage.producer(topic), [topic], transaction)
    for consumer in consumers:
        stage.nothing(consumer)
    stage.ask("commit", transaction=transaction)
    for topic, consumer in zip(topics, consumers, strict=True):
        stage.receive_all(consumer, [topic])


@scenario("NEW_TXN", "A batch in a transaction commits as a whole.", SOURCE, bug="ignores commit")
def a_batch_in_a_transaction(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic, batch=5)
    transaction = begun(stage)
    stage.send_in(producer, texts(0, 5), transaction)
    stage.ask("commit", transaction=transaction)
    stage.receive_in_order(consumer, texts(0, 5))


@scenario(
    "NEW_TXN",
    "A reader has no message of an open transaction available, and none behind it, until it commits.",
    "PIP-31, read committed",
    bug="says has-message.available true",
)
def an_open_transaction_has_no_message_available(stage: Stage) -> None:
    topic = stage.topic()
    producer, reader = stage.producer(topic), stage.reader(topic)
    stage.send(producer, ["m-0"])
    transaction = begun(stage)
    stage.send_in(producer, ["m-1"], transaction)
    stage.send(producer, ["m-2"])
    stage.receive_in_order(reader, ["m-0"])
    stage.that(not stage.ask("has-message", reader=reader)["available"], "something is available")
    stage.ask("commit", transaction=transaction)
    stage.until(lambda: stage.ask("has-message", reader=reader)["available"], "nothing is available")
    stage.receive_in_order(reader, ["m-1", "m-2"])


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN", "Acknowledgements of a committed transaction hold.", SOURCE, bug="ignores acknowledge"
)
def acknowledgements_of_a_committed_transaction_hold(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send_each(stage.producer(topic), texts(0, 2))
    got = stage.receive_all(consumer, texts(0, 2))
    transaction = begun(stage)
    for each in got:
        stage.acknowledge(consumer, each, transaction=transaction)
    stage.ask("commit", transaction=transaction)
    stage.close(consumer)
    stage.nothing(stage.consumer(topic, "Shared"))


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN",
    "Acknowledgements of an aborted transaction do not hold.",
    SOURCE,
    bug="without acknowledge.transaction",
)
def acknowledgements_of_an_aborted_transaction_do_not_hold(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send_each(stage.producer(topic), texts(0, 2))
    kept, dropped = stage.receive_all(consumer, texts(0, 2))
    for message, end in ((kept, "commit"), (dropped, "abort")):
        transaction = begun(stage)
        stage.acknowledge(consumer, message, transaction=transaction)
        stage.ask(end, transaction=transaction)
    stage.close(consumer)
    again = stage.consumer(topic, "Shared")
    stage.receive_all(again, [dropped["value"]], acknowledge=True)
    stage.nothing(again)


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN",
    "What an aborted transaction has acknowledged comes again to its Shared consumer.",
    SOURCE,
    bug="without acknowledge.transaction",
)
def aborted_acknowledgements_come_again(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send_each(stage.producer(topic), texts(0, 3))
    message = stage.receive_in_order(consumer, texts(0, 3))[-1]
    transaction = begun(stage)
    stage.acknowledge(consumer, message, transaction=transaction)
    stage.ask("abort", transaction=transaction)
    stage.receive_all(consumer, ["m-2"])


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN",
    "A transaction commits acknowledgements on one topic and messages on another together.",
    SOURCE,
    bug="ignores commit",
)
def a_transaction_consumes_and_publishes(stage: Stage) -> None:
    topic, other = stage.topic(), stage.topic()
    consumer, results = stage.consumer(topic, "Shared"), stage.consumer(other)
    producer = stage.producer(other)
    stage.send_each(stage.producer(topic), texts(0, 3))
    for each in stage.receive_in_order(consumer, texts(0, 3))[:2]:
        transaction = begun(stage)
        stage.send_in(producer, [f"of {each['value']}"], transaction)
        stage.acknowledge(consumer, each, transaction=transaction)
        stage.ask("commit", transaction=transaction)
    stage.receive_in_order(results, ["of m-0", "of m-1"])
    stage.close(consumer)
    stage.receive_all(stage.consumer(topic, "Shared"), ["m-2"])


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN",
    "Transactions may acknowledge single messages of a batch: those of an aborted one alone come again.",
    "PIP-31, PIP-54",
    bug="without acknowledge.transaction",
)
def transactions_acknowledge_single_messages_of_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", batch_index=True)
    stage.send(stage.producer(topic, batch=6), texts(0, 6))
    kept, dropped = begun(stage), begun(stage)
    for number, each in enumerate(stage.receive_in_order(consumer, texts(0, 6))):
        stage.acknowledge(consumer, each, transaction=dropped if number % 2 else kept)
    stage.ask("commit", transaction=kept)
    stage.ask("abort", transaction=dropped)
    stage.close(consumer)
    again = stage.consumer(topic, "Shared", batch_index=True)
    stage.receive_all(again, ["m-1", "m-3", "m-5"], acknowledge=True)
    stage.nothing(again)


@scenario(
    "ADD_SUBSCRIPTION_TO_TXN",
    "A second transaction cannot acknowledge a message that an open one has acknowledged.",
    SOURCE,
    bug="succeeds acknowledge",
)
def two_transactions_cannot_acknowledge_a_message(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic), ["a"])
    (message,) = stage.receive_all(consumer, ["a"])
    first, second = begun(stage), begun(stage)
    stage.acknowledge(consumer, message, transaction=first)
    fields = {"consumer": consumer, "message": message["id"], "transaction": second}
    stage.refused(("TransactionConflict", "Other"), "acknowledge", **fields)
    stage.ask("commit", transaction=first)
    stage.until(lambda: stage.backlog(topic) == 0, "the message is in the backlog")


@scenario("END_TXN", "A transaction that has ended cannot be used again.", SOURCE, bug="succeeds send")
def an_ended_transaction_cannot_be_used(stage: Stage) -> None:
    topic = stage.topic()
    producer, transaction = stage.producer(topic), begun(stage)
    stage.send_in(producer, ["a"], transaction)
    stage.ask("commit", transaction=transaction)
    kinds = ("TransactionConflict", "NotFound", "Other")
    fields = {"producer": producer, "transaction": transaction, "messages": [{"value": "b"}]}
    stage.refused(kinds, "send", **fields)


@scenario(
    "END_TXN",
    "Messages behind an open transaction wait for its end.",
    "PIP-31, read committed",
    bug="without send.transaction",
)
def messages_wait_for_an_open_transaction(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    transaction = begun(stage)
    stage.send_in(producer, ["m-0"], transaction)
    stage.send(producer, ["m-1"])
    stage.nothing(consumer)
    stage.ask("commit", transaction=transaction)
    stage.receive_in_order(consumer, ["m-0", "m-1"])


@scenario("END_TXN", "Open transactions outlive an unload of their topic.", SOURCE, bug="without send.transaction")
def transactions_outlive_an_unload(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    kept, dropped = begun(stage), begun(stage)
    stage.send_in(producer, ["dropped"], dropped)
    stage.send_in(producer, ["m-0"], kept)
    stage.side.unload(topic)
    stage.nothing(consumer)
    stage.send_in(producer, ["m-1"], kept)
    stage.ask("abort", transaction=dropped)
    stage.ask("commit", transaction=kept)
    stage.receive_in_order(consumer, ["m-0", "m-1"])
    stage.nothing(consumer)
