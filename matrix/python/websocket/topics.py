"""Scenarios of subscriptions, topics and brokers."""

from __future__ import annotations

import time

from pulsarium.matrix.python.lines import MOMENT, PATIENCE, Lines, equal, texts, that
from pulsarium.matrix.python.websocket.support import (
    PARTITION,
    Message,
    Socket,
    acknowledge,
    consume,
    hear,
    nothing_more,
    place,
    receive,
    refused,
    say,
    send,
    share,
    sockets,
    text,
)


def exclusive_busy(cell: Lines) -> None:
    with sockets(cell) as ours:
        first = ours.consumer(cell.topic)
        refused(409, lambda: ours.consumer(cell.topic))
        first.close()
        ours.consumer(cell.topic)


def failover(cell: Lines) -> None:
    with sockets(cell) as ours:
        names = "ab"
        first, second = (ours.consumer(cell.topic, subscriptionType="Failover", consumerName=name) for name in names)
        producer = ours.producer(cell.topic)
        send(producer, texts(0, 10))
        # A hash of the consumers' names and the topic's name decides which consumer is active.
        active, standby = second, first
        message: Message | None = None
        end = time.monotonic() + PATIENCE
        while message is None and time.monotonic() < end:
            active, standby = standby, active
            message = hear(active, 0.1)
        assert message, "no consumer is active"
        acknowledge(active, message)
        equal([text(message), *consume(active, 9)], texts(0, 10))
        nothing_more(standby)
        active.close()
        send(producer, texts(10, 20))
        equal(consume(standby, 10), texts(10, 20))


def shared(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumers = [ours.consumer(cell.topic, subscriptionType="Shared", receiverQueueSize=5) for _ in range(2)]
        send(ours.producer(cell.topic), texts(0, 20))
        found = share(consumers, 20)
        equal(sorted(text(message) for _, message in found), texts(0, 20))
        equal({consumer for consumer, _ in found}, {0, 1}, "consumers")


def partitioned(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        producer = ours.producer(cell.topic, messageRoutingMode="RoundRobinPartition")
        for each in texts(0, 30):
            send(producer, [each])
        messages = receive(consumer, 30)
        equal(sorted(map(text, messages)), texts(0, 30))
        equal({place(message["messageId"])[PARTITION] for message in messages}, {0, 1, 2}, "partitions")


def pattern(cell: Lines) -> None:
    base = f"persistent://{cell.namespace}/"
    with sockets(cell) as ours:
        for name in ("red-1", "red-2", "blue"):
            send(ours.producer(base + name), [name])
        consumer = ours.consumer_of_several(topicsPattern=f"{base}red-.*")
        equal(sorted(consume(consumer, 2)), ["red-1", "red-2"])
        nothing_more(consumer)


def multi_topics(cell: Lines) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(2)]
    with sockets(cell) as ours:
        consumer = ours.consumer_of_several(topics=",".join(topics))
        for topic in topics:
            send(ours.producer(topic), [topic])
        equal(sorted(consume(consumer, 2)), topics)


def unload(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        producer = ours.producer(cell.topic)
        send(producer, texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
        cell.do("unload")
        send(producer, texts(5, 10))
        # Acknowledgements in flight may have been lost with the old consumer.
        found: set[str] = set()
        while not found >= set(texts(5, 10)):
            found |= set(consume(consumer, 1))


def brokers(cell: Lines) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(8)]
    for url in cell.http_urls:
        with sockets(cell, url) as ours:
            for topic in topics:
                consumer = ours.consumer(topic)
                send(ours.producer(topic), [topic])
                equal(consume(consumer, 1), [topic])


def token(cell: Lines) -> None:
    with sockets(cell, header=_bearer(cell.token)) as ours:
        consumer = ours.consumer(cell.topic)
        send(ours.producer(cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
    with sockets(cell, header=_bearer(cell.wrong_token)) as theirs:
        refused(401, lambda: theirs.producer(cell.topic))


def tls(cell: Lines) -> None:
    with sockets(cell, cell.https_url, header=_bearer(cell.token), sslopt={"ca_certs": cell.authority}) as ours:
        consumer = ours.consumer(cell.topic)
        send(ours.producer(cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def zero_queue(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, pullMode="true")
        send(ours.producer(cell.topic), texts(0, 10))
        nothing_more(consumer)
        for each in texts(0, 10):
            say(consumer, type="permit", permitMessages=1)
            equal(consume(consumer, 1), [each])


def producer_name(cell: Lines) -> None:
    with sockets(cell) as ours:
        producer = ours.producer(cell.topic, producerName="p")
        refused(409, lambda: ours.producer(cell.topic, producerName="p"))
        producer.close()
        ours.producer(cell.topic, producerName="p")


def terminated(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        producer = ours.producer(cell.topic, sendTimeoutMillis=5000)
        send(producer, texts(0, 5))
        cell.do("terminate")
        equal(consume(consumer, 5), texts(0, 5))
        # The topic ends for a consumer with the last acknowledgement, for which there is no receipt.
        end = time.monotonic() + PATIENCE
        while not _is_at_end(consumer):
            that(time.monotonic() < end, "the topic does not end")
            time.sleep(MOMENT)
        say(producer, payload="")
        result = (hear(producer) or {}).get("result", "")
        that(result.startswith("send-error"), f"the message was accepted: {result}")


def _is_at_end(consumer: Socket) -> bool:
    say(consumer, type="isEndOfTopic")
    return bool((hear(consumer) or {})["endOfTopic"])


TOPICS = {
    "exclusive-busy": exclusive_busy,
    "failover": failover,
    "shared": shared,
    "partitioned": partitioned,
    "pattern": pattern,
    "multi-topics": multi_topics,
    "unload": unload,
    "brokers": brokers,
    "token": token,
    "tls": tls,
    "zero-queue": zero_queue,
    "producer-name": producer_name,
    "terminated": terminated,
}
