"""What the broker confirmed, and what therefore has to be there after a crash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from pulsarium.client import Message, MessageId

Place: TypeAlias = tuple[int, int, int]
"""Ledger, entry, and index in its batch: -1 outside of one."""

START: Place = (-1, -1, -1)


def place_of(message_id: MessageId) -> Place:
    """Where a message stands."""
    return message_id.ledger_id, message_id.entry_id, message_id.batch_index


def behind(place: Place) -> Place:
    """The least place that is behind this one."""
    return place[0], place[1], place[2] + 1


def number_of(message: Message[Any]) -> int:
    """What `numbered` gave it."""
    return message.event_timestamp() - 1


def numbered(number: int) -> dict[str, Any]:
    """The options of a message that carries its number, with a value or without."""
    return {"event_timestamp": number + 1}


class Messages:
    """Of one topic: they are numbered, each number is sent once."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.receipts: dict[int, Place] = {}
        """Where the broker said that a message is, or where it was found after a crash: there it has to stay."""
        self.lost: set[int] = set()
        """What was sent, had no receipt, and was not there after a crash: it must not come back."""

    def next_number(self) -> int:
        """For a message to be sent."""
        self.sent += 1
        return self.sent - 1

    def has(self, number: int, message_id: MessageId) -> None:
        """The broker confirmed it."""
        assert number not in self.receipts, f"{self.topic}: two receipts for {number}"
        self.receipts[number] = place_of(message_id)

    def unknown(self) -> list[int]:
        """Numbers of which nobody knows whether they are stored."""
        return [each for each in range(self.sent) if each not in self.receipts and each not in self.lost]

    def check(self, found: list[tuple[Place, int]], since: Place = START) -> None:
        """`found` is all of the topic from `since` on, read after a crash while nobody sends. AssertionError, or it is
        known now what became of everything that was sent."""
        places = [place for place, _ in found]
        numbers = [number for _, number in found]
        assert places == sorted(set(places)), f"{self.topic}: read out of order"
        twice = (
            sorted({each for each in numbers if numbers.count(each) > 1}) if len(set(numbers)) < len(numbers) else []
        )
        assert not twice, f"{self.topic}: stored more than once: {twice}"
        where = {number: place for place, number in found}
        there = {number: place for number, place in self.receipts.items() if place >= since}
        wrong = {each: (place, where.get(each)) for each, place in there.items() if where.get(each) != place}
        assert not wrong, f"{self.topic}: not where the receipt says: {{number: (receipt, found)}} {wrong}"
        strange = where.keys() - range(self.sent)
        assert not strange, f"{self.topic}: never sent: {sorted(strange)}"
        back = where.keys() & self.lost
        assert not back, f"{self.topic}: was not there after an earlier crash, and is now: {sorted(back)}"
        self.settle(found)

    def settle(self, found: list[tuple[Place, int]]) -> None:
        """What had no receipt is among these, or is lost."""
        where = {number: place for place, number in found}
        for number in self.unknown():
            if number in where:
                self.receipts[number] = where[number]
            else:
                self.lost.add(number)

    def forget(self, places: set[Place]) -> None:
        """These may be there or not: nobody needs them any more."""
        self.lost.update(number for number, place in self.receipts.items() if place in places)
        self.receipts = {number: place for number, place in self.receipts.items() if place not in places}

    def places(self) -> list[Place]:
        """Of all that is known to be stored, in order."""
        return sorted(self.receipts.values())


class Acknowledged:
    """Of one subscription: what it must not deliver again, and what it has to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.since: Place = START
        """Everything before it is done, by a cumulative acknowledgement or a seek."""
        self.done: set[Place] = set()
        self.asked: set[Place] = set()
        """Acknowledged without an answer yet."""
        self.asked_since: Place | None = None
        """The same of a cumulative one: all of it or nothing."""
        self.seeking: Place | None = None
        """A seek without an answer: as if it had not been, or nothing but it."""

    def confirm(self, places: Iterable[Place]) -> None:
        """Asked for, and answered."""
        self.done.update(places)
        self.asked.difference_update(places)

    def confirm_since(self, place: Place) -> None:
        """Asked for, and answered."""
        self.since = max(self.since, place)
        self.asked_since = None

    def moved(self, place: Place) -> None:
        """A seek has succeeded."""
        self.since, self.done, self.asked, self.asked_since, self.seeking = place, set(), set(), None, None

    def check(self, stored: list[Place], delivered: list[Place]) -> None:
        """`delivered` is all that came after a crash, of all that is `stored`. Afterwards it is certain
        what is done."""
        try:
            self._check(stored, delivered)
        except AssertionError as error:
            if self.seeking is None:
                raise
            before = str(error)
            self.moved(self.seeking)
            try:
                self._check(stored, delivered)
            except AssertionError as after:
                raise AssertionError(f"neither as before the seek ({before}) nor as after it ({after})") from None
        self.seeking = None

    def _check(self, stored: list[Place], delivered: list[Place]) -> None:
        came = set(delivered)
        assert len(came) == len(delivered), f"{self.name}: delivered twice: {doubled(delivered)}"
        assert came <= set(stored), f"{self.name}: not of this topic: {sorted(came.difference(stored))}"
        again = {each for each in came if each < self.since or each in self.done}
        assert not again, f"{self.name}: acknowledged, and here again: {sorted(again)} (done up to {self.since})"
        left = {each for each in stored if each >= self.since} - self.done - self.asked
        perhaps = {each for each in left if self.asked_since is not None and each < self.asked_since}
        gone = left - perhaps - came
        assert not gone, f"{self.name}: never acknowledged, and gone: {sorted(gone)} (done up to {self.since})"
        assert not perhaps & came or perhaps <= came, f"{self.name}: half of a cumulative acknowledgement"
        self.done = {each for each in stored if each >= self.since} - came
        self.asked, self.asked_since = set(), None


def doubled(places: list[Place]) -> list[Place]:
    return sorted({each for each in places if places.count(each) > 1})


class Registers:
    """Named values that are set over REST: for each, those that it may have now."""

    def __init__(self) -> None:
        self._possible: dict[str, list[Any]] = {}

    def setting(self, name: str, value: Any) -> None:
        """Asked for, not answered yet."""
        self._possible.setdefault(name, [None]).append(value)

    def is_set(self, name: str, value: Any) -> None:
        """Answered, or seen after a crash."""
        self._possible[name] = [value]

    def known(self, name: str) -> Any:
        """Its value, None at first; of several the first."""
        return self._possible.get(name, [None])[0]

    def check(self, name: str, value: Any) -> None:
        """It is read after a crash."""
        possible = self._possible.get(name, [None])
        assert value in possible, f"{name} is {value!r}, and not one of {possible!r}"
        self.is_set(name, value)
