"""The consumer of one topic for a WebSocket: its permits, its messages, and its retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.websocket.decoding import EntryDecoder, EntryPlace, ReceivedMessage
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLink, BrokerLinks
from pulsarium.broker.web.websocket.options import ConsumerOptions
from pulsarium.broker.web.websocket.retry import Retry, is_final
from pulsarium.broker.web.websocket.topic_producer import Opened
from pulsarium.proto.batch import MOST_MESSAGES
from pulsarium.proto.entry import messages_in
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId, words_of
from pulsarium.proto.numbers import unsigned
from pulsarium.proto.topic_name import TopicName

log = PartLog("websocket")

SHARED_TYPES: Final = ("Shared", "Key_Shared")
Entry = tuple[int, int]  # ledger and entry


class Taker(Protocol):
    """The owner of topic consumers."""

    def arrived(self, consumer: TopicConsumer) -> None:
        """Note that a consumer has messages."""
        ...

    def forget(self, consumer: TopicConsumer) -> None:
        """Forget all deliveries of a consumer, because its messages come again."""
        ...

    def refused(self, failed: BrokerFailure) -> None:
        """Note that the broker refuses a consumer for good."""
        ...


class TopicConsumer:
    """A consumer of one topic. It subscribes again after an unload."""

    def __init__(
        self, links: BrokerLinks, topic: TopicName, subscription: str, options: ConsumerOptions, to: Taker
    ) -> None:
        self._links = links
        self._subscription = subscription
        self._options = options
        self._to = to
        self.topic = topic
        self.end_of_topic = False
        self.messages: deque[ReceivedMessage] = deque()  # that the broker sent, and the client has not got
        self._start = options.start  # of a reader
        self._skips_start = False
        self._link: BrokerLink | None = None  # while subscribed
        self._number = 0
        self._epoch = 0
        self._used = 0  # permits to give back to the broker
        self._opened: Opened | None = None
        self._retry = Retry(links.broker.clock.machine, self._open)
        self._arrived: deque[tuple[EntryPlace, bytes]] = deque()  # entries that are not taken apart yet
        self._decoder = EntryDecoder()

    @property
    def shares(self) -> bool:
        """Return whether the subscription redelivers single messages."""
        return self._options.type in SHARED_TYPES

    def open(self, opened: Opened) -> None:
        """Subscribe. `opened` hears the first answer."""
        self._opened = opened
        self._open()

    def _open(self) -> None:
        self._links.look_up(str(self.topic), self._found)

    def _found(self, link: BrokerLink | BrokerFailure) -> None:
        if isinstance(link, BrokerFailure):
            self._refused(link)
            return
        options, number, request = self._options, link.number(), link.number()
        self._number = number
        link.consumers[number] = self
        asked = pb.CommandSubscribe(
            topic=str(self.topic),
            subscription=self._subscription,
            subType=options.type,
            consumer_id=number,
            request_id=request,
            consumer_name=options.name,
            priority_level=options.priority_level,
            durable=options.durable,
            read_compacted=False,
            initialPosition=pb.CommandSubscribe.Earliest if options.earliest else pb.CommandSubscribe.Latest,
            force_topic_creation=True,
            consumer_epoch=self._epoch,
        )
        self._skips_start = self._start not in (None, MessageId.EARLIEST, MessageId.LATEST)
        if self._start is not None:
            asked.start_message_id.CopyFrom(self._start.to_data())
        if options.type == "Key_Shared":
            asked.keySharedMeta.keySharedMode = pb.AUTO_SPLIT

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                link.consumers.pop(number, None)
                self._refused(answer)
                return
            self._link, self._used = link, 0
            self._retry.succeeded()
            if options.queue:
                self._flow(options.queue)
            self._tell(None)

        link.request(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=asked), request, answered)

    def _refused(self, failed: BrokerFailure) -> None:
        if self._links.closed:
            return
        if self._opened is not None:
            self._tell(failed)
        elif is_final(failed):
            self._to.refused(failed)
        else:
            self._retry.later()

    def _tell(self, failed: BrokerFailure | None) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened(failed)

    def received(self, command: pb.BaseCommand, trailing: bytes) -> None:
        """Handle a message, the end of the topic or of the consumer."""
        if command.type == pb.BaseCommand.MESSAGE:
            self._receive(command.message, trailing)
        elif command.type == pb.BaseCommand.REACHED_END_OF_TOPIC:
            self.end_of_topic = True
        else:
            self.lost()

    def _receive(self, message: pb.CommandMessage, stored: bytes) -> None:
        if message.HasField("consumer_epoch") and message.consumer_epoch < self._epoch:
            return  # sent before the redelivery that the client asked for
        found = message.message_id
        ledger, entry = found.ledgerId, found.entryId
        told = message.redelivery_count, tuple(message.ack_set), message.message_permits or 1
        place = EntryPlace(ledger, entry, self.topic.partition_index, *told)
        self._arrived.append((place, stored))
        if len(self._arrived) == 1:  # no thread takes an earlier entry apart
            self._take_apart()

    def _take_apart(self) -> None:
        """Take entries apart in their order. One that takes long is the work of a thread, and others wait behind it."""
        while self._arrived:
            place, stored = self._arrived[0]
            decode = partial(self._decoded, self._decoder, place, stored)
            try:
                takes_long = self._decoder.takes_long(stored)
            except ProtocolError:
                takes_long = False
            if takes_long:
                self._in_thread(decode)
                return
            self._arrived.popleft()
            self._take(place, decode())

    def _in_thread(self, decode: Callable[[], list[ReceivedMessage] | ProtocolError]) -> None:
        arrived, token = self._arrived, trio.lowlevel.current_trio_token()

        def taken(found: list[ReceivedMessage] | ProtocolError) -> None:
            if arrived is self._arrived and arrived:  # not lost or redelivered meanwhile
                place, _ = arrived.popleft()
                self._take(place, found)
                self._take_apart()

        def ended(outcome: Any) -> None:
            with suppress(trio.RunFinishedError):  # the broker has stopped
                clock = self._links.broker.clock.machine
                token.run_sync_soon(lambda: clock.call_later(0, lambda: taken(outcome.unwrap())))

        trio.lowlevel.start_thread_soon(decode, ended)

    @staticmethod
    def _decoded(decoder: EntryDecoder, place: EntryPlace, stored: bytes) -> list[ReceivedMessage] | ProtocolError:
        try:
            return list(decoder.messages(place, stored))
        except ProtocolError as error:
            return error

    def _forget(self) -> None:
        """Forget the messages that the client has not got, because they come again."""
        self.messages.clear()
        self._arrived, self._decoder = deque(), EntryDecoder()  # a thread may still use the former ones

    def _take(self, place: EntryPlace, messages: list[ReceivedMessage] | ProtocolError) -> None:
        if isinstance(messages, ProtocolError):
            where = {"ledger": place.ledger_id, "entry": place.entry_id}
            log.warning("an entry cannot be read", topic=self.topic, **where, reason=messages)
            self.acknowledge([place.id()], pb.CommandAck.BatchDeSerializeError)
            self.took(place.permits)
            return
        action = self._options.crypto_action
        for each in messages:
            if each.context is not None and action != "CONSUME":
                if action == "DISCARD":
                    self.acknowledge([each.id], pb.CommandAck.DecryptionError)
                continue
            if self._skips(each.id):
                self.took(1)
            else:
                self.messages.append(each)
        self._to.arrived(self)

    def _skips(self, found: MessageId) -> bool:
        """Return whether a reader begins behind a message."""
        start = self._start
        if not self._skips_start or start is None:
            return False
        if (found.ledger_id, found.entry_id) != (start.ledger_id, start.entry_id):
            self._skips_start = False
            return False
        return start.batch_index < 0 or found.batch_index <= start.batch_index

    def lost(self) -> None:
        """Subscribe again, because the broker closed the consumer or the connection ended."""
        if self._link is not None:
            self._link.consumers.pop(self._number, None)
            self._link = None
        self._forget()
        self._to.forget(self)
        self._retry.later()

    def close(self) -> None:
        """End the consumer."""
        self._retry.stop()
        self._arrived = deque()
        if self._link is not None:
            self._link.consumers.pop(self._number, None)
            asked = pb.CommandCloseConsumer(consumer_id=self._number, request_id=self._link.number())
            self._link.send(pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=asked))
            self._link = None

    def ask_for_one(self) -> None:
        """Ask for a message, without a queue."""
        self._flow(1)

    def took(self, count: int) -> None:
        """Give permits back, once half of the queue is used."""
        self._used += count
        if self._options.queue and self._used >= max(self._options.queue // 2, 1):
            self._flow(self._used)
            self._used = 0

    def _flow(self, permits: int) -> None:
        if self._link is not None:
            flow = pb.CommandFlow(consumer_id=self._number, messagePermits=permits)
            self._link.send(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))

    def delivered(self, message: ReceivedMessage) -> None:
        """Note that a reader's client has a message: the reader goes on behind the message."""
        if self._start is not None:
            self._start = message.id
            if message.single is None or message.id.batch_index + 1 == message.id.batch_size:
                self._send_ack(pb.CommandAck.Cumulative, [self._acked(message.id)])

    def acknowledge(
        self, ids: Collection[MessageId], validation_error: pb.CommandAck.ValidationError | None = None
    ) -> None:
        """Acknowledge messages individually."""
        acked = [self._acked(each) for each in ids]
        acked += [self._acked(each.first_chunk) for each in ids if each.first_chunk is not None]
        self._send_ack(pb.CommandAck.Individual, acked, validation_error)

    def _acked(self, message_id: MessageId) -> pb.MessageIdData:
        data = pb.MessageIdData(ledgerId=unsigned(message_id.ledger_id), entryId=unsigned(message_id.entry_id))
        size, index = message_id.batch_size, message_id.batch_index
        if 1 < size <= MOST_MESSAGES and 0 <= index < size:
            data.ack_set.extend(words_of((1 << size) - 1 & ~(1 << index)))
        return data

    def _send_ack(
        self,
        kind: pb.CommandAck.AckType,
        ids: Collection[pb.MessageIdData],
        validation_error: pb.CommandAck.ValidationError | None = None,
    ) -> None:
        if self._link is None or not self.topic.is_persistent:
            return
        ack = pb.CommandAck(consumer_id=self._number, ack_type=kind, message_id=ids)
        if validation_error is not None:
            ack.validation_error = validation_error
        self._link.send(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack))

    def redeliver(self, entries: Collection[Entry]) -> None:
        """Ask for messages again: for the named ones of a shared subscription, else for all."""
        if self._link is None or not self.topic.is_persistent:
            return
        asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self._number)
        if self.shares:
            asked.message_ids.extend(pb.MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in entries)
        else:
            self._epoch += 1
            asked.consumer_epoch = self._epoch
            self.took(len(self.messages) + sum(messages_in(stored) or 1 for _, stored in self._arrived))
            self._forget()
            self._to.forget(self)
        self._link.send(
            pb.BaseCommand(type=pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=asked)
        )

    def unsubscribe(self, done: Callable[[pb.BaseCommand | BrokerFailure], None]) -> None:
        """Delete the subscription."""
        if self._link is None:
            done(BrokerFailure(pb.ServiceNotReady, "Not connected to broker"))
            return
        request = self._link.number()
        asked = pb.CommandUnsubscribe(consumer_id=self._number, request_id=request)
        self._link.request(pb.BaseCommand(type=pb.BaseCommand.UNSUBSCRIBE, unsubscribe=asked), request, done)
