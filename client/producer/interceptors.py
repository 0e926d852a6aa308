"""Interceptors: code of the application that sees every message before it is sent, and its outcome."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic

from pulsarium.client.errors import PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.schema.schema import T

if TYPE_CHECKING:
    from pulsarium.client.producer.producer import Producer

log: logging.Logger = logging.getLogger(__name__)


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


class Interceptors(Generic[T]):
    """The interceptors of one producer, in their order."""

    def __init__(self, producer: Producer[T], interceptors: Sequence[ProducerInterceptor[T]]) -> None:
        self._producer = producer
        self._interceptors = interceptors
        self._closed = False

    def before_send(self, content: T | None, options: MessageOptions) -> tuple[T | None, MessageOptions]:
        """Return the message as all interceptors have changed it, one after another."""
        for interceptor in self._interceptors:
            with _logging(interceptor, "before_send"):
                content, options = interceptor.before_send(self._producer, content, MessageOptions(**options))
        return content, options

    def hear_of(self, receipt: Receipt, content: T | None, options: MessageOptions) -> None:
        """Tell all interceptors the outcome of this message, once it is known."""

        def outcome(message_id: MessageId | None, error: PulsarError | None) -> None:
            for interceptor in self._interceptors:
                with _logging(interceptor, "on_send_acknowledgement"):
                    interceptor.on_send_acknowledgement(self._producer, content, options, message_id, error)

        receipt.then(outcome)

    def close(self) -> None:
        """Close each interceptor. Later calls do nothing."""
        if self._closed:
            return
        self._closed = True
        for interceptor in self._interceptors:
            with _logging(interceptor, "close"):
                interceptor.close()


@contextmanager
def _logging(interceptor: ProducerInterceptor[Any], name: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        log.warning("%s of the interceptor %r failed", name, interceptor, exc_info=True)
