"""The base class of an application's interceptors, which see every message before it is sent, and its outcome."""

from __future__ import annotations

from typing import Generic

from pulsarium.client.errors import PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import T


class ProducerInterceptor(Generic[T]):
    """An interceptor of messages, as in Java clients. Override the methods that you need.

    All methods are called on the event loop and must not block. An exception is logged, and the message is sent as it
    was.
    """

    def before_send(
        self, producer: Producer[T], content: T | None, options: MessageOptions
    ) -> tuple[T | None, MessageOptions]:
        """Return the content and the options to send in place of these."""
        return content, options

    def on_send_acknowledgement(
        self,
        producer: Producer[T],
        content: T | None,
        options: MessageOptions,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """Handle the outcome of a message: its `message_id` when it is published, else `error`.

        Not called for a message whose `send` was canceled while it waited for `max_pending_messages` or the memory
        limit.
        """

    def close(self) -> None:
        """Handle the end of the producer."""
