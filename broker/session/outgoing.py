"""Build frames for a client in a buffer. A lab's tap sees and changes them; without a lab there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pulsarium.broker.model.client import AssignedBroker, Delivery
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import BYTES, frame, frame_head
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_REQUEST, unsigned

REFRESH = b"PulsarAuthRefresh"  # data of AUTH_CHALLENGE in mid-session
HIGH_WATER = 1 << 20  # from this many waiting bytes on, no messages are added
MANY = 4  # messages from which a cut template takes less time than the whole
MOST_WAITING = 8 << 20  # from this many waiting bytes on, no commands are read


Frame = tuple[bytes, bytes]  # a serialized command, and the bytes behind it


class Tap(Protocol):
    """A tap between a session and its transport, through which every frame of both directions passes."""

    def incoming(self, frames: Iterable[Frame]) -> Iterable[Frame]:
        """Return the client's frames to handle now, given those that arrived."""
        ...

    def outgoing(self, data: bytes) -> Iterable[bytes]:
        """Return the bytes to write now, in parts, given whole frames of the broker."""
        ...

    @property
    def may_read(self) -> bool:
        """Return whether more frames of the client may be read."""
        ...

    @property
    def held(self) -> int:
        """Return the number of bytes for the client that the tap holds back."""
        ...

    def ended(self) -> None:
        """Handle or drop held frames, because the client sends no more."""
        ...

    def closed(self, sender: Direction, reason: str) -> None:
        """Note that `sender` ended the connection. "" as the reason is an orderly end."""
        ...


class OutgoingFrames:
    """Frames that wait for the socket, and templates for the frequent ones."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.taken = 0  # bytes that were taken to be written
        self.tap: Tap | None = None
        self._unsent = b""  # past the tap, but not sent
        self._receipt = pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT)
        self._message = pb.BaseCommand(type=pb.BaseCommand.MESSAGE)
        self._last_message_id = pb.BaseCommand(type=pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
        self._last_message: tuple[object, ...] | None = None  # in that template
        self._pong = frame(_command(pb.BaseCommand.PONG, pong=pb.CommandPong()))
        self._ping = frame(_command(pb.BaseCommand.PING, ping=pb.CommandPing()))

    def add(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """Return all waiting bytes, and forget them."""
        data = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        if self.tap is not None:
            data = b"".join(self.tap.outgoing(data))  # may close the session, and so add bytes
        if self._unsent:
            data, self._unsent = self._unsent + data, b""
        self.taken += len(data)
        return data

    @property
    def waiting(self) -> int:
        """Return the number of unsent bytes, here and in a tap."""
        return self.size if self.tap is None else self.size + self.tap.held

    @property
    def may_read(self) -> bool:
        """Return whether more commands of the client may be read."""
        return self.takes_more() and (self.tap is None or self.tap.may_read)

    def takes_more(self, promised: int = 0) -> bool:
        """Return whether another answer has room, with `promised` bytes of answers that wait for a commit."""
        return self.waiting + promised < MOST_WAITING

    def put_back(self, data: bytes) -> None:
        """Return bytes to the buffer that the socket did not take."""
        self._unsent = data + self._unsent
        self.size += len(data)
        self.taken -= len(data)

    def past_the_tap(self, data: bytes) -> None:
        """Add bytes that a tap kept or made. They go before frames that are added later."""
        self._unsent += data
        self.size += len(data)

    def command(self, command: pb.BaseCommand, trailing: bytes = b"") -> None:
        self.add(frame_head(command.SerializeToString(), len(trailing)))
        if trailing:
            self.add(trailing)

    def auth_challenge(self, method: str, version: int) -> None:
        data = pb.AuthData(auth_method_name=method, auth_data=REFRESH)
        challenge = pb.CommandAuthChallenge(challenge=data, protocol_version=version)
        self.command(pb.BaseCommand(type=pb.BaseCommand.AUTH_CHALLENGE, authChallenge=challenge))

    def ping(self) -> None:
        self.add(self._ping)

    def pong(self) -> None:
        self.add(self._pong)

    def receipts(self, producer_id: int, entries: Iterable[PendingPublish]) -> None:
        """Add SEND_RECEIPT for each entry."""
        receipt, command = self._receipt.send_receipt, self._receipt.SerializeToString
        message_id = receipt.message_id
        receipt.producer_id = producer_id
        ledger_id = highest = size = -1
        parts: list[bytes] = []
        head = b""
        for entry in entries:
            receipt.sequence_id = entry.sequence_id
            if entry.highest_sequence_id != highest:
                receipt.highest_sequence_id = highest = entry.highest_sequence_id
            if entry.ledger_id != ledger_id:
                message_id.ledgerId = ledger_id = entry.ledger_id
            message_id.entryId = entry.entry_id
            data = command()
            if len(data) != size:
                size = len(data)
                head = frame_head(data, 0)[:-size]
            parts += (head, data)
        self.add(b"".join(parts))

    def last_message_id(
        self, request_id: int, last: Position, partition: int, batch_index: int | None, mark: Position
    ) -> pb.BaseCommand:
        """Return GET_LAST_MESSAGE_ID_RESPONSE. The caller serializes the command before the next call."""
        reply = self._last_message_id.getLastMessageIdResponse
        reply.request_id = request_id
        answer = last, partition, batch_index, mark
        if answer == self._last_message:  # clients ask again and again before a new message arrives
            return self._last_message_id
        self._last_message = answer
        message_id, marked = reply.last_message_id, reply.consumer_mark_delete_position
        message_id.ledgerId, message_id.entryId = unsigned(last.ledger_id), unsigned(last.entry_id)
        message_id.partition = partition
        if batch_index is None:
            message_id.ClearField("batch_index")
        else:
            message_id.batch_index = batch_index
        marked.ledgerId, marked.entryId = unsigned(mark.ledger_id), unsigned(mark.entry_id)
        return self._last_message_id

    def messages(
        self,
        consumer_id: int,
        partition: int,
        consumer_epoch: int | None,
        deliveries: Sequence[Delivery],
        bare: Callable[[bytes], bytes] | None,
        *,
        tells_permits: bool = False,
    ) -> None:
        """Add MESSAGE for each delivery. `bare` strips what the client does not know from an entry.

        With `tells_permits`, each MESSAGE has the permits that it cost, unless it cost none.
        """
        base, add, size = self._message, self.parts.append, self.size
        message = base.message
        message.consumer_id = consumer_id
        message.message_id.partition = partition
        if consumer_epoch is not None:
            message.consumer_epoch = consumer_epoch
        message_id = message.message_id
        was_redelivered, cuts = False, len(deliveries) >= MANY and not tells_permits
        cut_at, entry_size, continued, start, before, after = (-1, -1), -1, 0, b"", b"", b""
        for position, entry, permits, redelivery_count, ack_set in deliveries:
            ledger_id, entry_id = position
            if redelivery_count:
                message.redelivery_count = redelivery_count
            elif was_redelivered:
                message.ClearField("redelivery_count")
            was_redelivered = redelivery_count > 0
            if tells_permits and permits > 0:
                message.message_permits = permits
            elif tells_permits:
                message.ClearField("message_permits")
            if bare is not None:
                entry = bare(entry)
            if cuts and not (was_redelivered or ack_set):  # nearly all: only the last byte of the entry id changes
                if (ledger_id, entry_id >> 7) != cut_at:
                    cut_at = ledger_id, entry_id >> 7
                    before, after = self._cut(ledger_id, entry_id)
                    entry_size, continued = -1, 0x80 if entry_id > 0x7F else 0
                if len(entry) != entry_size:
                    entry_size = len(entry)
                    start = frame_head(before + b" " + after, entry_size)[: 8 + len(before)]
                head = start + BYTES[entry_id & 0x7F | continued] + after
            else:
                message_id.ledgerId, message_id.entryId = position
                command = base.SerializeToString() if not ack_set else self._with_ack_set(base, ack_set)
                head = frame_head(command, len(entry))
            add(head)
            add(entry)
            size += len(head) + len(entry)
        self.size = size
        if tells_permits:
            message.ClearField("message_permits")
        if was_redelivered:
            message.ClearField("redelivery_count")
        if consumer_epoch is not None:
            message.ClearField("consumer_epoch")

    def _cut(self, ledger_id: int, entry_id: int) -> tuple[bytes, bytes]:
        """Return the template of MESSAGE with this id in two parts. Between them was the entry id's first byte."""
        message_id = self._message.message.message_id
        message_id.ledgerId, message_id.entryId = ledger_id, entry_id
        whole = self._message.SerializeToString()
        message_id.entryId = entry_id ^ 1
        other = self._message.SerializeToString()
        at = next(index for index, byte in enumerate(whole) if byte != other[index])
        return whole[:at], whole[at + 1 :]

    @staticmethod
    def _with_ack_set(base: pb.BaseCommand, ack_set: Sequence[int]) -> bytes:
        command = pb.BaseCommand()  # a template's lists never free their memory
        command.CopyFrom(base)
        command.message.ack_set.extend(ack_set)
        return command.SerializeToString()

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str) -> None:
        error = pb.CommandSendError(producer_id=producer_id, sequence_id=sequence_id, error=code, message=text)  # type: ignore[arg-type]
        self.command(pb.BaseCommand(type=pb.BaseCommand.SEND_ERROR, send_error=error))

    def success(self, request_id: int) -> None:
        done = pb.CommandSuccess(request_id=request_id)
        self.command(pb.BaseCommand(type=pb.BaseCommand.SUCCESS, success=done))

    def error(self, request_id: int, code: int, text: str) -> None:
        error = pb.CommandError(request_id=request_id, error=code, message=text)  # type: ignore[arg-type]
        self.command(pb.BaseCommand(type=pb.BaseCommand.ERROR, error=error))

    def producer_success(
        self,
        request_id: int,
        name: str,
        last_sequence_id: int,
        topic_epoch: int | None,
        ready: bool,
        schema_version: bytes,
    ) -> None:
        success = pb.CommandProducerSuccess(
            request_id=request_id,
            producer_name=name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version,
            producer_ready=ready,
        )
        if topic_epoch is not None:
            success.topic_epoch = unsigned(topic_epoch)
        self.command(pb.BaseCommand(type=pb.BaseCommand.PRODUCER_SUCCESS, producer_success=success))

    def close_producer(self, producer_id: int, assigned: AssignedBroker | None) -> None:
        close = pb.CommandCloseProducer(producer_id=producer_id, request_id=NO_REQUEST)
        _assign(close, assigned)
        self.command(pb.BaseCommand(type=pb.BaseCommand.CLOSE_PRODUCER, close_producer=close))

    def close_consumer(self, consumer_id: int, assigned: AssignedBroker | None) -> None:
        close = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=NO_REQUEST)
        _assign(close, assigned)
        self.command(pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=close))

    def topic_migrated(
        self, kind: pb.CommandTopicMigrated.ResourceType, resource_id: int, assigned: AssignedBroker
    ) -> None:
        migrated = pb.CommandTopicMigrated(resource_id=resource_id, resource_type=kind)
        if assigned.service_url:
            migrated.brokerServiceUrl = assigned.service_url
        if assigned.service_url_tls:
            migrated.brokerServiceUrlTls = assigned.service_url_tls
        self.command(pb.BaseCommand(type=pb.BaseCommand.TOPIC_MIGRATED, topicMigrated=migrated))

    def reached_end_of_topic(self, consumer_id: int) -> None:
        end = pb.CommandReachedEndOfTopic(consumer_id=consumer_id)
        self.command(pb.BaseCommand(type=pb.BaseCommand.REACHED_END_OF_TOPIC, reachedEndOfTopic=end))

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None:
        change = pb.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=is_active)
        self.command(pb.BaseCommand(type=pb.BaseCommand.ACTIVE_CONSUMER_CHANGE, active_consumer_change=change))


def _assign(close: pb.CommandCloseProducer | pb.CommandCloseConsumer, assigned: AssignedBroker | None) -> None:
    if assigned is not None:
        close.assignedBrokerServiceUrl = assigned.service_url
        if assigned.service_url_tls:
            close.assignedBrokerServiceUrlTls = assigned.service_url_tls


def message_id(ledger_id: int, entry_id: int, partition: int, batch_index: int) -> pb.MessageIdData:
    """Return a message id in protobuf."""
    return pb.MessageIdData(
        ledgerId=unsigned(ledger_id), entryId=unsigned(entry_id), partition=partition, batch_index=batch_index
    )


def _command(type: int, **body: object) -> bytes:
    return pb.BaseCommand(type=type, **body).SerializeToString()  # type: ignore[arg-type]
