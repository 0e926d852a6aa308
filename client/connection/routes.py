"""Route what the broker sends on a connection to waiting requests, producers, consumers and watchers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import anyio

from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.errors import AlreadyClosed, ConnectError, PulsarError, ServiceUnitNotReady, error_of
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of


class ReplyFrame(NamedTuple):
    """The reply to a request, and the bytes behind it."""

    command: pb.BaseCommand
    trailing: bytes


class ConsumerHandler(Protocol):
    """Handle the commands for one consumer. No method may block."""

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        """Handle MESSAGE. `trailing` is its entry."""
        ...

    def on_end_of_topic(self) -> None:
        """Handle REACHED_END_OF_TOPIC."""
        ...

    def on_active_change(self, is_active: bool) -> None:
        """Handle ACTIVE_CONSUMER_CHANGE."""
        ...

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """Handle CLOSE_CONSUMER or the end of the connection. The handler is detached already.

        `owner` is the broker that serves the topic now, if the command names it (PIP-307).
        """
        ...


class ProducerHandler(Protocol):
    """Handle the commands for one producer. No method may block."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        """Handle SEND_RECEIPT."""
        ...

    def on_send_error(self, error: pb.CommandSendError) -> None:
        """Handle SEND_ERROR."""
        ...

    def is_stuck(self) -> bool:
        """Return whether the entry that waited for a receipt at the last call still waits. Called with each PING."""
        ...

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """Handle CLOSE_PRODUCER or the end of the connection, as for consumers."""
        ...


class WatcherHandler(Protocol):
    """Handle the commands for one watcher of topics (PIP-145). No method may block."""

    def on_success(self, success: pb.CommandWatchTopicListSuccess) -> None:
        """Handle WATCH_TOPIC_LIST_SUCCESS, before any update that arrived with it."""
        ...

    def on_update(self, update: pb.CommandWatchTopicUpdate) -> None:
        """Handle WATCH_TOPIC_UPDATE."""
        ...

    def on_lost(self, error: PulsarError) -> None:
        """Handle the end of the connection. The handler is detached already."""
        ...


class SessionHandler(Protocol):
    """Handle the updates that the broker pushes to one session of a scalable topic. No method may block."""

    def on_update(self, update: SessionUpdate) -> None:
        """Handle an update of the session."""
        ...

    def on_lost(self, error: PulsarError) -> None:
        """Handle the end of the connection. The handler is detached already."""
        ...


SessionUpdate: TypeAlias = (
    pb.CommandScalableTopicUpdate
    | pb.CommandScalableTopicAssignmentUpdate
    | pb.CommandWatchScalableTopicsUpdate
    | pb.CommandWatchTcAssignmentsUpdate
)
"""An update of a layout (71), an assignment (75), a set of topics (77) or transaction coordinators (80)."""

_SESSION_IDS: Mapping[int, str] = MappingProxyType(
    {
        pb.BaseCommand.SCALABLE_TOPIC_UPDATE: "session_id",
        pb.BaseCommand.SCALABLE_TOPIC_ASSIGNMENT_UPDATE: "consumer_id",
        pb.BaseCommand.WATCH_SCALABLE_TOPICS_UPDATE: "watch_id",
        pb.BaseCommand.WATCH_TC_ASSIGNMENTS_UPDATE: "watch_id",
    }
)
"""The field that names the session, for each command that pushes an update."""


class Waiter:
    """A request without its reply."""

    __slots__ = ("deadline", "done", "error", "patience", "reply")

    def __init__(self, deadline: float, patience: anyio.CancelScope | None) -> None:
        """Wait until `deadline`, a time of the event loop's clock, or in the scope `patience` without this deadline."""
        self.deadline: float = deadline if patience is None else math.inf
        self.patience: anyio.CancelScope | None = patience
        self.done: anyio.Event = anyio.Event()
        self.reply: ReplyFrame | None = None
        self.error: PulsarError | None = None


class Routes:
    """The waiting requests and the handlers of one connection."""

    def __init__(self) -> None:
        self.waiters: dict[int, Waiter] = {}  # by request id
        self.late: dict[int, Callable[[], None]] = {}  # by request id: how to undo a canceled request that succeeds
        self.consumers: dict[int, ConsumerHandler] = {}
        self.producers: dict[int, ProducerHandler] = {}
        self.watchers: dict[int, WatcherHandler] = {}
        self.sessions: dict[tuple[int, int], SessionHandler] = {}  # by the type of their updates, and their id

    @property
    def is_idle(self) -> bool:
        """Return whether no request waits and no handler is attached."""
        return not (self.waiters or self.consumers or self.producers or self.watchers or self.sessions)

    def is_stuck(self) -> bool:
        """Return whether a producer is stuck. Ask every producer, because each remembers its last answer."""
        return sum(producer.is_stuck() for producer in self.producers.values()) > 0

    def expire(self, now: float) -> float | None:
        """End requests whose deadline is over, without a reply. Return the next deadline, or None."""
        for waiter in self.waiters.values():  # in the order of their deadlines
            if waiter.deadline <= now:
                waiter.done.set()
            elif waiter.deadline < math.inf:
                return waiter.deadline
        return None

    def take(self, command: pb.BaseCommand, trailing: bytes) -> None:
        """Route a command. Ignore a command that no request and no handler waits for."""
        _TO.get(command.type, Routes._answer)(self, command, trailing)

    def end(self, error: PulsarError) -> None:
        """Tell all waiting requests and handlers that the connection is lost."""
        waiters, self.waiters = self.waiters, {}
        self.late.clear()
        for waiter in waiters.values():
            waiter.error = again(error)
            waiter.done.set()
        handlers: list[ProducerHandler | ConsumerHandler | WatcherHandler | SessionHandler] = [
            *self.producers.values(),
            *self.consumers.values(),
            *self.watchers.values(),
            *self.sessions.values(),
        ]
        self.producers.clear()
        self.consumers.clear()
        self.watchers.clear()
        self.sessions.clear()
        for handler in handlers:
            handler.on_lost(again(error))

    def given_up(self, request_id: int, waiter: Waiter, undo: Callable[[], None]) -> None:
        """Call `undo` for a canceled request, now if the broker has executed it, or when it succeeds."""
        if waiter.error is not None:
            return  # the request was refused, or the connection is lost
        queued = waiter.patience is not None and waiter.patience.deadline == math.inf
        if queued or waiter.reply is not None:
            undo()
        else:
            self.late[request_id] = undo

    def _answer(self, command: pb.BaseCommand, trailing: bytes) -> None:
        request_id = request_id_of(command)
        waiter = None if request_id is None else self.waiters.pop(request_id, None)
        if waiter is not None:
            waiter.error = _error_in(command)
            waiter.reply = ReplyFrame(command, trailing)
            waiter.done.set()
        elif request_id in self.late:
            undo = self.late.pop(request_id)
            if _error_in(command) is None:
                undo()

    def _producer_success(self, command: pb.BaseCommand, trailing: bytes) -> None:
        """Answer the request, or remove its deadline if the producer has to wait for exclusive access (PIP-68)."""
        success = command.producer_success
        if success.producer_ready:
            self._answer(command, trailing)
            return
        waiter = self.waiters.get(success.request_id)
        if waiter is not None and waiter.patience is not None:
            waiter.patience.deadline = math.inf

    def _message(self, command: pb.BaseCommand, trailing: bytes) -> None:
        message = command.message
        handler = self.consumers.get(message.consumer_id)
        if handler is not None:
            handler.on_message(message, trailing)

    def _receipt(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.producers.get(command.send_receipt.producer_id)
        if handler is not None:
            handler.on_receipt(command.send_receipt)

    def _send_error(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.producers.get(command.send_error.producer_id)
        if handler is not None:
            handler.on_send_error(command.send_error)

    def _close_producer(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.producers.pop(command.close_producer.producer_id, None)
        if handler is not None:
            handler.on_lost(ServiceUnitNotReady("the broker closed the producer"), _owner(command.close_producer))

    def _close_consumer(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.consumers.pop(command.close_consumer.consumer_id, None)
        if handler is not None:
            handler.on_lost(ServiceUnitNotReady("the broker closed the consumer"), _owner(command.close_consumer))

    def _migrated(self, command: pb.BaseCommand, trailing: bytes) -> None:
        moved = command.topicMigrated
        is_producer = moved.resource_type == pb.CommandTopicMigrated.Producer
        handler = (self.producers if is_producer else self.consumers).pop(moved.resource_id, None)
        if handler is not None:
            cluster = BrokerUrls(text_of(moved.brokerServiceUrl), text_of(moved.brokerServiceUrlTls), migrated=True)
            handler.on_lost(ServiceUnitNotReady("the topic migrated to another cluster"), cluster)

    def _topics_listed(self, command: pb.BaseCommand, trailing: bytes) -> None:
        watcher = self.watchers.get(command.watchTopicListSuccess.watcher_id)
        if watcher is not None:
            watcher.on_success(command.watchTopicListSuccess)
        self._answer(command, trailing)

    def _topics_changed(self, command: pb.BaseCommand, trailing: bytes) -> None:
        watcher = self.watchers.get(command.watchTopicUpdate.watcher_id)
        if watcher is not None:
            watcher.on_update(command.watchTopicUpdate)

    def _session_updated(self, command: pb.BaseCommand, trailing: bytes) -> None:
        update = getattr(command, COMMANDS[command.type].field)
        handler = self.sessions.get((command.type, getattr(update, _SESSION_IDS[command.type])))
        if handler is not None:
            handler.on_update(update)

    def _active_change(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.consumers.get(command.active_consumer_change.consumer_id)
        if handler is not None:
            handler.on_active_change(command.active_consumer_change.is_active)

    def _end_of_topic(self, command: pb.BaseCommand, trailing: bytes) -> None:
        handler = self.consumers.get(command.reachedEndOfTopic.consumer_id)
        if handler is not None:
            handler.on_end_of_topic()


_TO = {
    pb.BaseCommand.MESSAGE: Routes._message,
    pb.BaseCommand.PRODUCER_SUCCESS: Routes._producer_success,
    pb.BaseCommand.SEND_RECEIPT: Routes._receipt,
    pb.BaseCommand.SEND_ERROR: Routes._send_error,
    pb.BaseCommand.CLOSE_PRODUCER: Routes._close_producer,
    pb.BaseCommand.CLOSE_CONSUMER: Routes._close_consumer,
    pb.BaseCommand.ACTIVE_CONSUMER_CHANGE: Routes._active_change,
    pb.BaseCommand.REACHED_END_OF_TOPIC: Routes._end_of_topic,
    pb.BaseCommand.TOPIC_MIGRATED: Routes._migrated,
    pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS: Routes._topics_listed,
    pb.BaseCommand.WATCH_TOPIC_UPDATE: Routes._topics_changed,
    **dict.fromkeys(_SESSION_IDS, Routes._session_updated),
}


def _fields_named(name: str) -> Mapping[int, str]:
    """Map each command type whose body has a field of this name to the body's field."""
    bodies = {number: pb.BaseCommand.DESCRIPTOR.fields_by_name[spec.field] for number, spec in COMMANDS.items()}
    return MappingProxyType(
        {n: body.name for n, body in bodies.items() if body.message_type and name in body.message_type.fields_by_name}
    )


_WITH_REQUEST_ID = _fields_named("request_id")
_WITH_ERROR = _fields_named("error")


def _owner(close: pb.CommandCloseProducer | pb.CommandCloseConsumer) -> BrokerUrls | None:
    urls = BrokerUrls(text_of(close.assignedBrokerServiceUrl), text_of(close.assignedBrokerServiceUrlTls))
    return urls if any(urls) else None


def request_id_of(command: pb.BaseCommand) -> int | None:
    field = _WITH_REQUEST_ID.get(command.type)
    if field is None or not (body := getattr(command, field)).HasField("request_id"):
        return None
    return int(body.request_id)


def _error_in(command: pb.BaseCommand) -> PulsarError | None:
    """Return the error in a reply, or None."""
    field = _WITH_ERROR.get(command.type)
    if field is None or not (body := getattr(command, field)).HasField("error"):
        return None
    return error_of(body.error, text_of(body.message))


def again(error: PulsarError) -> PulsarError:
    """Return a copy of the error for another waiting task. An exception that is raised twice collects both tracebacks.

    The copy is a `ConnectError` whatever ended the connection, or `AlreadyClosed` if the client was closed.
    """
    kind = AlreadyClosed if isinstance(error, AlreadyClosed) else ConnectError
    return kind(*error.args)
