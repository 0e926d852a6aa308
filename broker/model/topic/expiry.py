"""Tell how old entries are, by the broker's stamp where there is one, else by publish_time (B-34), and acknowledge
those that are too old for everybody (B-24)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarium.broker.logs import Log
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.broker.model.subscription.skip import skip_through
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata
from pulsarium.proto.errors import EntryError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription, SubscribedPersistentTopic
    from pulsarium.broker.model.topic.persistent import PersistentTopic

log = Log("upkeep")

ALMOST_CAUGHT_UP = 1000  # entries: below it, connected consumers are left alone until their oldest entry is old indeed
OLD_INDEED = 1.5  # times the age that was named


# how old entries are


def published_before(time_ms: int) -> Callable[[bytes], bool]:
    """Whether an entry is older than that."""

    def matches(entry: bytes) -> bool:
        stamp = parse_broker_metadata(entry)
        if stamp is not None and stamp.HasField("broker_timestamp"):
            return signed(stamp.broker_timestamp) < time_ms
        try:
            return signed(parse_metadata(entry).publish_time) < time_ms
        except EntryError:  # as in Pulsar
            return False

    return matches


def last_published_before(topic: SubscribedPersistentTopic, time_ms: int) -> Position | None:
    """The last entry that is older than that. Raises StorageError when what it looks at is damaged, unless
    autoSkipNonRecoverableData lets it look elsewhere."""
    skips = topic.stores.config.autoSkipNonRecoverableData
    return topic.ledger.find_last(published_before(time_ms), skips_damaged=skips)


def is_older(ledger: LedgerSequence, position: Position, seconds: int, now_ms: int) -> bool:
    """Whether the entry there is older than so many seconds, or damaged, as in Pulsar; 0: nothing is."""
    if not seconds or not ledger.is_valid(position):
        return False
    try:
        return published_before(now_ms - seconds * 1000)(ledger.read_now(position))
    except DamagedEntriesError:
        return True


# what happens to those that are too old


def check_ttl(topic: PersistentTopic) -> None:
    """Expire what is older than the topic's TTL on every subscription, of readers too; idle where none is durable."""
    seconds = topic.policies.message_ttl_seconds
    marks = [cursor.mark_delete for cursor in topic.log.cursors.values()]
    if seconds <= 0 or not marks:
        return
    try:
        if not is_older(topic.ledger, topic.ledger.next(min(marks)), seconds, topic.now_ms()):
            return
        last = last_published_before(topic, topic.now_ms() - seconds * 1000)
    except StorageError as error:  # as in Pulsar, without autoSkipNonRecoverableData
        log.warning("nothing expires: what is too old cannot be read", topic=topic.name, reason=error)
        return
    for subscription in list(topic.subscriptions.values()):
        if last is not None:
            _expire(subscription, last)


def expire_older_than(subscription: PersistentSubscription, seconds: int) -> bool:
    """REST: expire what is older than that. False: nothing was begun, for the subscription has almost caught up."""
    cursor, topic = subscription.cursor, subscription.topic
    backlog = cursor.backlog()
    if not backlog:
        return False
    oldest = topic.ledger.next(cursor.mark_delete)
    close = subscription.consumers and backlog < ALMOST_CAUGHT_UP
    if close and not is_older(topic.ledger, oldest, int(seconds * OLD_INDEED), topic.now_ms()):
        return False
    last = last_published_before(topic, topic.now_ms() - seconds * 1000)
    by_ledger = _last_closed_before(topic, cursor.mark_delete, seconds)
    found = max((each for each in (last, by_ledger) if each is not None), default=None)
    subscription.expired.tried_ms = topic.now_ms()
    if found is not None:
        _expire(subscription, found)
    return True


def _last_closed_before(topic: SubscribedPersistentTopic, mark: Position, seconds: int) -> Position | None:
    """The last entry of the ledgers that were closed so long ago: they are old whatever their producers' clocks say."""
    found: Position | None = None
    for ledger in topic.ledger.ledgers.values():
        if seconds <= 0 or not ledger.closed or topic.now_ms() <= ledger.rolled_ms + seconds * 1000:
            break
        if ledger.id >= mark.ledger_id and ledger.confirmed:
            found = Position(ledger.id, ledger.confirmed - 1)
    return found


def expire_through(subscription: PersistentSubscription, position: Position, ack_set: list[int]) -> bool:
    """REST: expire everything up to an entry. False: it is beyond the end of the topic."""
    subscription.expired.tried_ms = subscription.topic.now_ms()
    ledger = subscription.topic.ledger
    if not ledger.is_valid(position):
        if position > ledger.last_confirmed:
            return False
        position, ack_set = ledger.previous(ledger.clamp(position)), []
    _expire(subscription, position, ack_set)
    return True


def _expire(subscription: PersistentSubscription, position: Position, ack_set: list[int] | None = None) -> None:
    expired = subscription.expired
    expired.tried_ms = subscription.topic.now_ms()
    if position > subscription.cursor.mark_delete:
        expired.total += skip_through(subscription, position, ack_set or (), MovedBy.EXPIRED)
