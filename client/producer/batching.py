"""Messages that wait for others to share an entry with."""

from __future__ import annotations

from pulsarium.client.producer.draft import Draft


class Batch:
    """Those that follow each other."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.drafts: list[Draft] = []
        self._bytes = 0
        self._max_messages = max_messages
        self._max_bytes = max_bytes

    def fits(self, message: Draft) -> bool:
        """Whether it may be added: to an empty batch any message, later those of the same transaction, or of none."""
        if not self.drafts:
            return True
        return self.drafts[0].txn == message.txn and self._bytes + len(message.content) <= self._max_bytes

    def add(self, message: Draft) -> None:
        self.drafts.append(message)
        self._bytes += len(message.content)

    @property
    def is_full(self) -> bool:
        """Whether nothing can be added."""
        return len(self.drafts) >= self._max_messages or self._bytes >= self._max_bytes

    def take(self) -> list[list[Draft]]:
        """What is in it, once: the messages of each entry, in the order in which the entries are to be sent."""
        drafts, self.drafts, self._bytes = self.drafts, [], 0
        return [drafts] if drafts else []


class KeyBatch(Batch):
    """Those with the same key; the limits are of all keys together (BatchingType.KeyBased).

    An entry's number is that of its last message, and entries are sent in the order of these: of the messages 0, 3 and
    4 of one key and 1 and 2 of another the latter go first. So a broker that deduplicates takes them all.
    """

    def take(self) -> list[list[Draft]]:
        by_key: dict[bytes | str | None, list[Draft]] = {}
        for drafts in super().take():
            for message in drafts:
                by_key.setdefault(message.batch_key, []).append(message)
        return sorted(by_key.values(), key=lambda drafts: drafts[-1].sequence_id)
