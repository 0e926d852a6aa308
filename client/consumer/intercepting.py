"""Call the application's interceptors for the events of a consumer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId

logger: logging.Logger = logging.getLogger(__name__)


class Intercepted(Protocol):
    """A consumer with interceptors."""

    def topic(self) -> str: ...


class InterceptsConsumer(Protocol):
    """A `ConsumerInterceptor`. Options of a consumer do not know the type of its `consumer`."""

    def before_consume(self, consumer: Any, message: Message[Any]) -> Message[Any]: ...

    def on_acknowledge(self, consumer: Any, message_id: MessageId, error: Exception | None) -> None: ...

    def on_acknowledge_cumulative(self, consumer: Any, message_id: MessageId, error: Exception | None) -> None: ...

    def on_negative_acks_send(self, consumer: Any, message_ids: set[MessageId]) -> None: ...

    def on_ack_timeout_send(self, consumer: Any, message_ids: set[MessageId]) -> None: ...

    def close(self) -> None: ...


class Interceptors:
    """The interceptors of one consumer."""

    def __init__(self, consumer: Intercepted, interceptors: Sequence[InterceptsConsumer]) -> None:
        self._consumer = consumer
        self._interceptors = tuple(interceptors)
        self._closed = False

    def __bool__(self) -> bool:
        """Return whether the consumer has interceptors."""
        return bool(self._interceptors)

    def before_consume(self, message: Message[Any]) -> Message[Any]:
        """Return the message to receive. Each interceptor gets the message that the one before it returned."""
        for interceptor in self._interceptors:
            try:
                message = interceptor.before_consume(self._consumer, message)
            except Exception:
                logger.exception("an interceptor failed in before_consume")
        return message

    def acknowledged(self, message_id: MessageId, error: Exception | None = None) -> None:
        self._each(lambda one: one.on_acknowledge(self._consumer, message_id, error))

    def acknowledged_cumulative(self, message_id: MessageId, error: Exception | None = None) -> None:
        self._each(lambda one: one.on_acknowledge_cumulative(self._consumer, message_id, error))

    def negative_acks(self, message_ids: set[MessageId]) -> None:
        self._each(lambda one: one.on_negative_acks_send(self._consumer, message_ids))

    def ack_timeouts(self, message_ids: set[MessageId]) -> None:
        self._each(lambda one: one.on_ack_timeout_send(self._consumer, message_ids))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._each(lambda one: one.close())

    def _each(self, call: Callable[[InterceptsConsumer], None]) -> None:
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except Exception:
                logger.exception("an interceptor of %s failed", self._consumer.topic())
