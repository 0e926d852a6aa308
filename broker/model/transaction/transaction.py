"""A transaction of a coordinator, and how the store keeps its parts: the topics and subscriptions that it changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from pulsarium.broker.model.ledger.stores import Stores

PAGE = 32 << 10
"""Bytes of the parts that are stored together: a transaction of more has several records, so that none is long."""


NO_PAGES: Mapping[int, Page] = MappingProxyType({})
RECORD = -1  # in place of the number of a page: the record of the transaction itself


class Status(Enum):
    """Pulsar's TxnStatus without the states of an ended transaction, which the coordinator forgets."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"


class TransactionPart(NamedTuple):
    """A topic that a transaction published to, or a subscription that it acknowledged on."""

    topic: str
    subscription: str | None = None

    @property
    def order(self) -> tuple[bool, str, str]:
        """Return a sort key: acknowledgements end before published messages become visible, as in Pulsar."""
        return self.subscription is None, self.topic, self.subscription or ""


Page = Sequence[TransactionPart]
"""Parts of one kind, topics or subscriptions, that have a record of their own."""


class PageNumbers(dict[TransactionPart, int]):
    """The page of each part that is in one. All states of a transaction share these numbers.

    A number is used once. So a part whose page was taken back, because its commit failed, is in no page.
    """

    def __init__(self) -> None:
        super().__init__()
        self.following = 0

    def give(self, page: Page) -> int:
        """Return the number of a new page."""
        number, self.following = self.following, self.following + 1
        self.update(dict.fromkeys(page, number))
        return number


@dataclass(frozen=True, slots=True)
class Transaction:
    """An immutable transaction. `parts` and `pages` list the topics and subscriptions on which it has not ended.

    Most transactions have few parts, and no page.
    """

    least: int
    opened_ms: int
    timeout_ms: int
    owner: str | None  # role that opened the transaction; None: any role may end it
    status: Status = Status.OPEN
    parts: frozenset[TransactionPart] = frozenset()  # in the record of the transaction itself
    pages: Mapping[int, Page] = field(default_factory=lambda: NO_PAGES)
    numbers: PageNumbers = field(default_factory=PageNumbers, compare=False, repr=False)

    def __contains__(self, part: TransactionPart) -> bool:
        return part in self.parts or self.numbers.get(part) in self.pages

    def in_order(self) -> Iterator[tuple[int, Page]]:
        """Yield all parts, with the numbers of their pages. Subscriptions come before topics."""
        own = sorted(self.parts, key=lambda part: part.order)
        if not self.pages:
            yield RECORD, own
            return
        for is_topic in (False, True):
            yield RECORD, [part for part in own if (part.subscription is None) is is_topic]
            for number, page in self.pages.items():
                if (page[0].subscription is None) is is_topic:
                    yield number, page

    @property
    def has_ended(self) -> bool:
        """Return whether no part is left."""
        return not (self.parts or self.pages)

    def with_parts_in_pages(self) -> Transaction:
        """Return the transaction with the parts of its record in pages."""
        pages = pages_of(sorted(self.parts, key=lambda part: part.order))
        return replace(
            self, parts=frozenset(), pages={**self.pages, **{self.numbers.give(page): page for page, _ in pages}}
        )

    def to_bytes(self) -> bytes:
        """Return the stored form, without the pages. The number is part of the path."""
        parts = sorted(self.parts, key=lambda part: part.order)
        return json.dumps([self.opened_ms, self.timeout_ms, self.owner, self.status.value, parts]).encode()

    @classmethod
    def from_bytes(cls, least: int, value: bytes, pages: Iterable[tuple[int, bytes]] = ()) -> Transaction:
        """Return the transaction of a stored form."""
        opened_ms, timeout_ms, owner, status, parts = json.loads(value)
        found = {number: tuple(TransactionPart(*part) for part in json.loads(page)) for number, page in sorted(pages)}
        numbers = PageNumbers()
        for number, page in found.items():
            numbers.following = number
            numbers.give(page)
        return cls(least, opened_ms, timeout_ms, owner, Status(status), _parts_of(parts), found, numbers)


def _parts_of(parts: Iterable[Sequence[str]]) -> frozenset[TransactionPart]:
    return frozenset(TransactionPart(*part) for part in parts)


def pages_of(parts: Iterable[TransactionPart]) -> Iterator[tuple[Page, bytes]]:
    """Divide parts into pages, and return each with its stored form."""
    for _, alike in groupby(parts, key=lambda part: part.subscription is None):
        page: list[TransactionPart] = []
        texts: list[str] = []
        size = 0
        for part in alike:
            text = json.dumps(part)
            page.append(part)
            texts.append(text)
            size += len(text)
            if size >= PAGE:
                yield tuple(page), _joined(texts)
                page, texts, size = [], [], 0
        if page:
            yield tuple(page), _joined(texts)


def _joined(texts: Iterable[str]) -> bytes:
    return f"[{','.join(texts)}]".encode()


def page_to_bytes(page: Page) -> bytes:
    """Return the stored form of a page."""
    return json.dumps(page).encode()


def recovered(stores: Stores, path: str) -> list[Transaction]:
    """Return the stored transactions of the coordinator at `path`."""
    found = []
    for least, value in stores.recovered_under(path):
        pages = ((int(number), page) for number, page in stores.recovered_under(f"{path}/{least}"))
        found.append(Transaction.from_bytes(int(least), value, pages))
    return found
