"""How long topics live: those that are old are deleted, and a few are kept to the end."""

from __future__ import annotations

from collections import Counter

from pulsarium.client import Client
from pulsarium.client.admin.errors import NotFound

from .journal import Messages
from .stage import located, read

NAMESPACE = "public/crash"
LIFETIME = 1500  # messages; with more, reading all of them after each crash would take its time
KEPT = 4  # old topics


class Lives:
    """Names of topics, and what becomes of them."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self.kept: list[Messages] = []
        self._condemned: list[str] = []
        self._deleted: set[str] = set()

    def next(self, name: str) -> str:
        """A topic that was never there."""
        self._count[name] += 1
        return f"persistent://{NAMESPACE}/{name}-{self._count[name]}"

    def is_over(self, messages: Messages, lifetime: int = LIFETIME) -> bool:
        """Whether it is time for another topic. What this one has must be known."""
        if messages.sent < lifetime:
            return False
        if len(self.kept) < KEPT:
            self.kept.append(messages)
        else:
            self._condemned.append(messages.topic)
        return True

    async def tidy(self, client: Client) -> None:
        """Delete what is condemned; what was deleted before must not have come back."""
        there = set(await client.admin.topics.get_list(NAMESPACE))
        back = there & self._deleted
        assert not back, f"deleted, and there again: {sorted(back)}"
        for topic in list(self._condemned):
            try:
                await client.admin.topics.delete(topic, force=True)
            except NotFound:  # the answer was lost in a crash
                assert topic not in there
            self._condemned.remove(topic)
            self._deleted.add(topic)

    async def check_kept(self, client: Client) -> None:
        """Read all that is kept to the end."""
        for messages in self.kept:
            last = max(messages.receipts.values())
            messages.check(located(await read(client, messages.topic, last)))
