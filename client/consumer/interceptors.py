"""Call the application's interceptors for the events of a consumer."""

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
    """The base class of interceptors.

    Override the methods of interest. Exceptions are logged, and otherwise ignored.
    """

    def before_consume(self, consumer: Consumer[Any], message: Message[Any]) -> Message[Any]:
        """Return the message that the application receives in place of this one, with the same id and topic.

        Args:
            consumer: The consumer.
            message: The message that `receive` is about to return.
        """
        return message

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        """Handle the acknowledgement of a message, or the error in its place.

        Args:
            consumer: The consumer.
            message_id: The message.
            error: The error, or None when the message is acknowledged.
        """

    def on_acknowledge_cumulative(
        self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None
    ) -> None:
        """Handle a cumulative acknowledgement, or the error in its place.

        Args:
            consumer: The consumer.
            message_id: The last message that is acknowledged.
            error: The error, or None when the messages are acknowledged.
        """

    def on_negative_acks_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        """Handle negatively acknowledged entries, just before the broker is asked to redeliver them.

        Args:
            consumer: The consumer.
            message_ids: The entries.
        """

    def on_ack_timeout_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        """Handle entries with an acknowledgement timeout, just before the broker is asked to redeliver them.

        Args:
            consumer: The consumer.
            message_ids: The entries.
        """

    def close(self) -> None:
        """Handle the end of the consumer."""


class Interceptors:
    """The interceptors of one consumer."""

    def __init__(self, consumer: Consumer[Any], interceptors: Sequence[ConsumerInterceptor]) -> None:
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

    def _each(self, call: Callable[[ConsumerInterceptor], None]) -> None:
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except Exception:
                logger.exception("an interceptor of %s failed", self._consumer.topic())
