"""Record what the broker confirmed, and check after a crash that the broker has stored it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from pulsarium.client import Message, MessageId

Place: TypeAlias = tuple[int, int, int]
"""The position of a message: ledger id, entry id and batch index, which is -1 outside a batch."""

START: Place = (-1, -1, -1)


def place_of(message_id: MessageId) -> Place:
    """Return the position of a message."""
    return message_id.ledger_id, message_id.entry_id, message_id.batch_index


def behind(place: Place) -> Place:
    """Return the least position that is greater than `place`."""
    return place[0], place[1], place[2] + 1


def number_of(message: Message[Any]) -> int:
    """Return the number that `numbered` gave to a message."""
    return message.event_timestamp() - 1


def numbered(number: int) -> dict[str, Any]:
    """Return send options that put the number of a message into its event time, which works without a value too."""
    return {"event_timestamp": number + 1}


class Messages:
    """The numbered messages of one topic. Each number is sent once."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.receipts: dict[int, Place] = {}
        """Position of each stored message, from its receipt or from a read after a crash. A position never changes."""
        self.lost: set[int] = set()
        """Messages that had no receipt and were not stored after a crash. They must not appear later."""
        self.forgotten: set[int] = set()
        """Messages that the broker may delete."""

    def next_number(self) -> int:
        """Return the number of the next message to send."""
        self.sent += 1
        return self.sent - 1

    def has(self, number: int, message_id: MessageId) -> None:
        """Record the receipt of a message."""
        assert number not in self.receipts, f"{self.topic}: two receipts for {number}"
        self.receipts[number] = place_of(message_id)

    def unknown(self) -> list[int]:
        """Return the numbers of messages that may be stored or not."""
        known = self.receipts.keys() | self.lost | self.forgotten
        return [each for each in range(self.sent) if each not in known]

    def check(self, found: list[tuple[Place, int]], since: Place = START) -> None:
        """Check the messages that the topic holds from `since` on, read after a crash while no client publishes.

        Raise `AssertionError` when a message is wrong. Otherwise record for every sent message whether it is stored.
        """
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
        assert not back, f"{self.topic}: not stored after an earlier crash, and stored now: {sorted(back)}"
        self.settle(found)

    def settle(self, found: list[tuple[Place, int]]) -> None:
        """Record each message without a receipt as stored if `found` has it, and otherwise as lost."""
        where = {number: place for place, number in found}
        for number in self.unknown():
            if number in where:
                self.receipts[number] = where[number]
            else:
                self.lost.add(number)

    def forget(self, places: set[Place]) -> None:
        """Forget the receipts of messages that the broker may delete because they are acknowledged."""
        self.forgotten.update(number for number, place in self.receipts.items() if place in places)
        self.receipts = {number: place for number, place in self.receipts.items() if place not in places}

    def places(self) -> list[Place]:
        """Return the positions of all messages that are known to be stored, in order."""
        return sorted(self.receipts.values())


class Acknowledged:
    """The acknowledgements of one subscription: confirmed ones, and ones without a response from the broker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.since: Place = START
        """Position before which the subscription must deliver nothing, after a cumulative acknowledgement or a seek."""
        self.done: set[Place] = set()
        self.asked: set[Place] = set()
        """Positions whose acknowledgement the broker has not confirmed yet."""
        self.asked_since: Place | None = None
        """End of a cumulative acknowledgement that is not confirmed yet. The broker stores it whole or not at all."""
        self.seeking: Place | None = None
        """Target of a seek that is not confirmed yet. The seek took effect whole or not at all."""

    def confirm(self, places: Iterable[Place]) -> None:
        """Record that the broker confirmed individual acknowledgements."""
        self.done.update(places)
        self.asked.difference_update(places)

    def confirm_since(self, place: Place) -> None:
        """Record that the broker confirmed a cumulative acknowledgement of all messages before `place`."""
        self.since = max(self.since, place)
        self.asked_since = None

    def moved(self, place: Place) -> None:
        """Record that a seek to `place` succeeded, which undoes all earlier acknowledgements."""
        self.since, self.done, self.asked, self.asked_since, self.seeking = place, set(), set(), None, None

    def check(self, stored: list[Place], delivered: list[Place]) -> None:
        """Check what the subscription delivered after a crash, of all messages that are stored.

        Raise `AssertionError` when neither the state before an unconfirmed seek nor the state after it fits. Otherwise
        record which messages are acknowledged.
        """
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
        assert not again, f"{self.name}: acknowledged, and delivered again: {sorted(again)} (done up to {self.since})"
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
    """Named settings that clients change over REST, each with the values that it may have now."""

    def __init__(self) -> None:
        self._possible: dict[str, list[Any]] = {}

    def setting(self, name: str, value: Any) -> None:
        """Record a request to change a setting, before the broker has answered."""
        self._possible.setdefault(name, [None]).append(value)

    def is_set(self, name: str, value: Any) -> None:
        """Record that a setting has a value, which the broker confirmed or which was read after a crash."""
        self._possible[name] = [value]

    def known(self, name: str) -> Any:
        """Return the first possible value of a setting, or None if it was never changed."""
        return self._possible.get(name, [None])[0]

    def check(self, name: str, value: Any) -> None:
        """Check that the value of a setting, read after a crash, is a possible one."""
        possible = self._possible.get(name, [None])
        assert value in possible, f"{name} is {value!r}, and not one of {possible!r}"
        self.is_set(name, value)
