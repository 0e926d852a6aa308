"""The parts that all consumers of scalable topics share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, cast

import anyio
import anyio.lowlevel

from pulsarium.client.blocks import Closing
from pulsarium.client.consumer.inbox import batch_receive
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.core import Core
from pulsarium.client.errors import PulsarError
from pulsarium.client.message import Message
from pulsarium.client.scalable.layout import Layout
from pulsarium.client.scalable.letters import ScalableLetters
from pulsarium.client.scalable.message import ScalableMessage
from pulsarium.client.scalable.segments import Segments
from pulsarium.client.scalable.session import LayoutSession
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ConsumerStatistics

if TYPE_CHECKING:
    from pulsarium.client.consumer.consumer import Consumer


class ScalableConsumer(Closing, Generic[T]):
    """A consumer of a scalable topic, open inside its `async with` block. After the block, calls raise `AlreadyClosed`.

    The consumer follows splits and merges of segments by itself, and opens its segments again after a lost connection.
    """

    def __init__(self, core: Core, options: ConsumerOptions[T], *, create: bool = True) -> None:
        """Make a consumer, without sending anything. With `create`, the broker may create a missing topic."""
        self._core = core
        self._options = options
        self._interceptors = Interceptors(cast("Consumer[T]", self), ())  # there are none
        self._letters = ScalableLetters(core, options.subscription_name, options.schema)
        self._segments = Segments(core, options, self._letters, self._interceptors, self._on_end)
        assert isinstance(options.topic, str)
        self._session = LayoutSession(core.brokers, options.topic, self._on_layout, self._failed, create=create)
        self._is_closed = False

    async def __aenter__(self) -> Self:
        try:
            await self._open(await self._session.open())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ScalableMessage[T]:
        return await self.receive()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.topic()}>"

    def topic(self) -> str:
        """Return the canonical name of the topic, `topic://tenant/namespace/topic`."""
        layout = self._session.layout
        return str(self._options.topic) if layout is None else layout.topic

    async def receive(self) -> ScalableMessage[T]:
        """Return the next message, and wait for one if necessary. Each call is a checkpoint.

        Raises:
            CryptoError: The message cannot be decrypted. The next call returns the message after it.
            AlreadyClosed: The consumer was closed.
            PulsarError: The consumer failed for good.
        """
        await self._segments.inbox.arrival()
        return self._take()

    async def batch_receive(self) -> list[ScalableMessage[T]]:
        """Return several messages, by the limits of `batch_receive_policy`.

        At the policy's timeout, return the messages that have arrived, or an empty list.

        Raises:
            PulsarError: The errors of `receive`.
        """
        await anyio.lowlevel.checkpoint()
        policy = self._options.batch_receive_policy
        messages = await batch_receive(self._segments.inbox, policy, self._take)
        return [message for message in messages if isinstance(message, ScalableMessage)]

    def statistics(self) -> ConsumerStatistics:
        """Return the consumer's statistics, over all segments."""
        return self._segments.statistics()

    async def aclose(self) -> None:
        """Close the consumer. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._session.close()
        try:
            await self._segments.aclose()
        finally:
            await self._letters.aclose()

    # ---- for each kind of consumer

    async def _open(self, layout: Layout) -> None:
        """Open the consumer on the first layout."""
        raise NotImplementedError

    def _on_layout(self, layout: Layout) -> None:
        """Follow a newer layout."""

    def _on_end(self) -> None:
        """Handle a segment that may have been read to its end."""

    def _delivered(self, segment_id: int, message: Message[Any]) -> int:
        """Note a message of a segment that is delivered now, and return the number of the delivery."""
        return 0

    # ---- private

    def _take(self) -> ScalableMessage[T]:
        message = self._segments.inbox.take()
        part = self._segments.find(message.topic_name())
        segment_id = -1 if part is None else part.wanted.id
        return ScalableMessage.of(message, self.topic(), segment_id, self._delivered(segment_id, message))

    def _failed(self, error: PulsarError) -> None:
        """End the consumer, because its session cannot be opened again."""
        self._segments.inbox.fail(error)
