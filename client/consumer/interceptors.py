"""The base class of an application's interceptors of a consumer."""

from __future__ import annotations

from typing import Any

from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId


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
