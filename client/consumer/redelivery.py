"""Redeliver negatively acknowledged entries and entries with a timeout, and move dead letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from anyio.abc import TaskGroup

from pulsarium.client.consumer.delayed import Delayed, Entry
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.letters import DeadLetters, Letters, of_topic
from pulsarium.client.consumer.options import IN_ORDER, ConsumerOptions
from pulsarium.client.consumer.retrying_keys import RetryingKeys
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.topic_name import TopicName


class Redelivery:
    """The entries of one topic that are to be redelivered after a delay, or become dead letters."""

    def __init__(
        self,
        tasks: TaskGroup,
        topic: str,
        options: ConsumerOptions[Any],
        letters: Letters,
        interceptors: Interceptors,
        *,
        ask_for: Callable[[set[Entry]], None],
        acknowledge: Callable[[MessageId], Awaitable[None]],
    ) -> None:
        """Track the entries of a topic. `acknowledge` acknowledges dead letters.

        `ask_for` asks the broker to redeliver entries whose delay is over. It must not wait.
        """
        self._options = options
        self._partition = TopicName.parse(topic).partition_index
        self._interceptors = interceptors
        self._ask_for = ask_for
        self.keys: RetryingKeys = RetryingKeys()
        """Keys of negatively acknowledged messages, where the broker keeps their order."""
        self.refused: Delayed = Delayed(tasks, self._refused_are_due)
        """Entries that were negatively acknowledged."""
        is_limited = options.unacked_messages_timeout is not None or options.ack_timeout_redelivery_backoff is not None
        self.unacknowledged: Delayed | None = Delayed(tasks, self._late_are_due) if is_limited else None
        """Entries that the application has received, if the consumer has an acknowledgement timeout."""
        self.dead_letters: DeadLetters | None = None
        if options.dead_letter_policy is not None and options.consumer_type not in IN_ORDER:
            policy = of_topic(options.dead_letter_policy, topic, options.subscription_name)
            self.dead_letters = DeadLetters(tasks, topic, policy, letters, acknowledge, self.refused.add)

    def refuse(self, message_id: MessageId, redelivery_count: int) -> float:
        """Redeliver a negatively acknowledged message after its delay, and return the delay in seconds."""
        backoff, delay = self._options.negative_ack_redelivery_backoff, self._options.negative_ack_redelivery_delay
        if backoff is not None:
            delay = backoff.next(redelivery_count)
        for entry in message_id.entries:
            self.refused.add(entry, delay)
            if self.unacknowledged is not None:
                self.unacknowledged.forget(entry)
        return delay

    def received(self, message_id: MessageId, redelivery_count: int = 0) -> None:
        """Start the timeout of a message, or of an error in its place.

        A batch has one timeout, from its first message.
        """
        waiting = self.unacknowledged
        if waiting is None or message_id.entry in waiting:
            return
        backoff, delay = self._options.ack_timeout_redelivery_backoff, self._options.unacked_messages_timeout
        if backoff is not None:
            delay = backoff.next(redelivery_count)
        assert delay is not None
        for entry in message_id.entries:
            waiting.add(entry, delay)

    def is_once_too_often(self, entry: Entry, messages: list[Message[Any]], redelivery_count: int) -> bool:
        """Return whether an entry becomes a dead letter, and is not to be delivered."""
        return self.dead_letters is not None and self.dead_letters.arrived(entry, messages, redelivery_count)

    def without_dead_letters(self, entries: set[Entry]) -> set[Entry]:
        """Move the dead letters of these entries, and return the others."""
        return entries if self.dead_letters is None else self.dead_letters.move(entries)

    def done(self, entry: Entry) -> None:
        """Forget an acknowledged entry."""
        if self.keys:
            self.keys.done(entry)
        self.refused.forget(entry)
        if self.unacknowledged is not None:
            self.unacknowledged.forget(entry)
        if self.dead_letters is not None:
            self.dead_letters.forget(entry)

    def done_before(self, end: Entry) -> None:
        """Forget all entries before this one, which are acknowledged."""
        for waiting in (self.refused, self.unacknowledged):
            if waiting:
                waiting.forget_before(end)

    def asked_for(self, entries: set[Entry]) -> None:
        """Forget entries that the broker redelivers."""
        self.refused.forget_all(entries)
        if self.unacknowledged is not None:
            self.unacknowledged.forget_all(entries)

    def clear(self) -> None:
        """Forget all entries, because the broker redelivers them."""
        self.keys.clear()
        self.refused.clear()
        if self.unacknowledged is not None:
            self.unacknowledged.clear()
        if self.dead_letters is not None:
            self.dead_letters.clear()

    def close(self) -> None:
        """Stop all timers of redelivery."""
        self.refused.close()
        if self.unacknowledged is not None:
            self.unacknowledged.close()
        if self.dead_letters is not None:
            self.dead_letters.close()

    def _refused_are_due(self, entries: set[Entry]) -> None:
        if self._interceptors:
            self._interceptors.negative_acks(self._ids_of(entries))
        self._ask_for(entries)

    def _late_are_due(self, entries: set[Entry]) -> None:
        if self._interceptors:
            self._interceptors.ack_timeouts(self._ids_of(entries))
        self._ask_for(entries)

    def _ids_of(self, entries: set[Entry]) -> set[MessageId]:
        return {MessageId(*entry, self._partition) for entry in entries}
