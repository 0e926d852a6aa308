"""Code of the application that sees every message on its way out."""

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
    """As of Java clients; override what is of interest. Called on the event loop; what it raises is logged, and the
    message goes on as it was."""

    def before_send(
        self, producer: Producer[T], content: T | None, options: MessageOptions
    ) -> tuple[T | None, MessageOptions]:
        """A message is about to be sent: what is sent in its place, and with which options."""
        return content, options

    def on_send_acknowledgement(
        self,
        producer: Producer[T],
        content: T | None,
        options: MessageOptions,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """It is published as `message_id`, or was not because of `error`. Nothing comes of a message whose `send` was
        cancelled while it waited for room."""

    def close(self) -> None:
        """The producer was closed."""


class Interceptors(Generic[T]):
    """All of one producer, in their order."""

    def __init__(self, producer: Producer[T], interceptors: Sequence[ProducerInterceptor[T]]) -> None:
        self._producer = producer
        self._interceptors = interceptors
        self._closed = False

    def before_send(self, content: T | None, options: MessageOptions) -> tuple[T | None, MessageOptions]:
        """What they make of a message, one of what the other did."""
        for interceptor in self._interceptors:
            with _logging(interceptor, "before_send"):
                content, options = interceptor.before_send(self._producer, content, MessageOptions(**options))
        return content, options

    def hear_of(self, receipt: Receipt, content: T | None, options: MessageOptions) -> None:
        """They are told what becomes of this message."""

        def outcome(message_id: MessageId | None, error: PulsarError | None) -> None:
            for interceptor in self._interceptors:
                with _logging(interceptor, "on_send_acknowledgement"):
                    interceptor.on_send_acknowledgement(self._producer, content, options, message_id, error)

        receipt.then(outcome)

    def close(self) -> None:
        """Once."""
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
        log.warning("%s of %r failed", name, interceptor, exc_info=True)
