"""Work that one command with very many message ids asks for."""

from __future__ import annotations

from bench.brokers import Broker
from bench.raw_driver import (
    CONSUMER_ID,
    PING,
    Connection,
    empty_ack,
    flow,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageIdData

TOPIC = "persistent://public/default/many-ids"
SIZE = 8
LIMIT_SECONDS = 120


def owed(broker: Broker, count: int) -> Connection:
    """Messages on a topic. A Shared consumer has as many of them as maxUnackedMessagesPerConsumer allows."""
    subscribe(connection := Connection(broker.service_url), TOPIC)
    connection.socket.close()  # it would not answer PINGs meanwhile
    producer = Connection(broker.service_url)
    with producer.socket:
        open_producer(producer, TOPIC)
        send_all(producer, send_segments(count, SIZE))
    connection = Connection(broker.service_url)
    connection.socket.settimeout(LIMIT_SECONDS)
    subscribe(connection, TOPIC)
    connection.send(flow(CONSUMER_ID, count))
    return connection


def acknowledge(broker: Broker, connection: Connection, count: int) -> None:
    command = empty_ack()
    command.ack.message_id.extend(ids(connection, count))
    command.ack.request_id = 2
    connection.send(command)
    connection.expect(BaseCommand.ACK_RESPONSE)


def redeliver(broker: Broker, connection: Connection, count: int) -> None:
    command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    command.redeliverUnacknowledgedMessages.consumer_id = CONSUMER_ID
    command.redeliverUnacknowledgedMessages.message_ids.extend(ids(connection, count))
    connection.send(command)
    connection.send(BaseCommand.FromString(PING))  # which is answered behind it
    connection.expect(BaseCommand.PONG)


def ids(connection: Connection, count: int) -> list[MessageIdData]:
    """All messages of the topic, in the order in which they were published."""
    first = connection.expect(BaseCommand.MESSAGE).message.message_id
    return [MessageIdData(ledgerId=first.ledgerId, entryId=number) for number in range(count)]
