"""Call the application's interceptors for every message of a producer before it is sent, and for its outcome."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol

from pulsarium.client.errors import PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.schema.schema import T

log: logging.Logger = logging.getLogger(__name__)


class InterceptsProducer(Protocol[T]):
    """A `ProducerInterceptor`. Options of a producer do not know the type of its `producer`."""

    def before_send(self, producer: Any, content: T | None, options: MessageOptions) -> tuple[T | None, MessageOptions]:
        """Return the content and the options to send in place of these."""
        ...

    def on_send_acknowledgement(
        self,
        producer: Any,
        content: T | None,
        options: MessageOptions,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """Handle the outcome of a message."""
        ...

    def close(self) -> None:
        """Handle the end of the producer."""
        ...


class Interceptors(Generic[T]):
    """The interceptors of one producer, in their order."""

    def __init__(self, producer: object, interceptors: Sequence[InterceptsProducer[T]]) -> None:
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
def _logging(interceptor: InterceptsProducer[Any], name: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        log.warning("%s of the interceptor %r failed", name, interceptor, exc_info=True)
