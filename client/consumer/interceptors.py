"""Code of the application's that sees what a consumer does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId

if TYPE_CHECKING:
    from pulsarium.client.consumer.consumer import Consumer

logger: logging.Logger = logging.getLogger(__name__)


class ConsumerInterceptor:
    """Base of interceptors: override what is of interest. What they raise is logged, and otherwise ignored."""

    def before_consume(self, consumer: Consumer[Any], message: Message[Any]) -> Message[Any]:
        """A message is about to be received: what to receive in its place. Its id and topic must be the same."""
        return message

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        """A message was acknowledged, or why it could not be."""

    def on_acknowledge_cumulative(
        self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None
    ) -> None:
        """So was everything up to this message."""

    def on_negative_acks_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        """The broker is about to be asked for these entries again, which were negatively acknowledged."""

    def on_ack_timeout_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        """The broker is about to be asked for these entries again, which were not acknowledged in time."""

    def close(self) -> None:
        """The consumer was closed."""


class Interceptors:
    """Those of one consumer."""

    def __init__(self, consumer: Consumer[Any], interceptors: Sequence[ConsumerInterceptor]) -> None:
        self._consumer = consumer
        self._interceptors = tuple(interceptors)
        self._closed = False

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._interceptors)

    def before_consume(self, message: Message[Any]) -> Message[Any]:
        """What to receive in place of this message: what the last one makes of what those before made of it."""
        for interceptor in self._interceptors:
            try:
                message = interceptor.before_consume(self._consumer, message)
            except Exception:
                logger.exception("before_consume")
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

    def _each(self, call: Callable[[ConsumerInterceptor], None]) -> None:
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except Exception:
                logger.exception("an interceptor of %s", self._consumer.topic())
