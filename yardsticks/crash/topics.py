"""Replace topics that have become long: keep a few to the end, and delete the others."""

from __future__ import annotations

from collections import Counter

from pulsarium.client import Client
from pulsarium.client.admin.errors import NotFound

from .journal import Messages
from .stage import located, read

NAMESPACE = "public/crash"
LIFETIME = 1500  # messages; reading more of them after each crash would take long
KEPT = 4  # old topics that are kept to the end


class Lives:
    """The names of all topics, and which old ones are kept or deleted."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self.kept: list[Messages] = []
        self._condemned: list[str] = []
        self._deleted: set[str] = set()

    def next(self, name: str) -> str:
        """Return the name of a topic that never existed."""
        self._count[name] += 1
        return f"persistent://{NAMESPACE}/{name}-{self._count[name]}"

    def is_over(self, messages: Messages, lifetime: int = LIFETIME) -> bool:
        """Return whether a topic is long enough to be replaced, and then keep or condemn it.

        Its messages must be checked already, so that the journal knows which are stored.
        """
        if messages.sent < lifetime:
            return False
        if len(self.kept) < KEPT:
            self.kept.append(messages)
        else:
            self._condemned.append(messages.topic)
        return True

    async def tidy(self, client: Client) -> None:
        """Delete the condemned topics, and check that no deleted topic exists again."""
        there = set(await client.admin.topics.get_list(NAMESPACE))
        back = there & self._deleted
        assert not back, f"deleted, and exists again: {sorted(back)}"
        for topic in list(self._condemned):
            try:
                await client.admin.topics.delete(topic, force=True)
            except NotFound:  # the answer was lost in a crash
                assert topic not in there
            self._condemned.remove(topic)
            self._deleted.add(topic)

    async def check_kept(self, client: Client) -> None:
        """Read and check all kept topics."""
        for messages in self.kept:
            last = max(messages.receipts.values())
            messages.check(located(await read(client, messages.topic, last)))
