"""POST .../subscription/{subscription}/skipByMessageIds (PIP-423): acknowledging messages by their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pulsarium.broker.admin.topic.backlog import subscription_of
from pulsarium.broker.admin.topic.messages import REPLICATOR
from pulsarium.broker.admin.topic.reading import entry_at, pause_after
from pulsarium.broker.admin.topic.skip_request import read_message_ids, skip_entries
from pulsarium.broker.admin.topic.topics import each
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import SUBSCRIPTION, route
from pulsarium.broker.http.reply import Reply, done
from pulsarium.broker.model.compaction.record import COMPACTION_CURSOR
from pulsarium.broker.model.errors import UnsupportedSubscriptionTypeError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import Skip, SkipEntry, batch_size
from pulsarium.proto.message_id import MessageId


@route(
    "POST",
    f"/admin/v2/persistent/{{tenant}}/{{namespace}}/{{topic}}{SUBSCRIPTION}/skipByMessageIds",
    needs=topic_operation("SKIP", forbidden=True),
    offered=lambda profile: profile.skip_by_message_ids,
)
async def skip_by_message_ids(call: Call) -> Reply:
    """Acknowledge messages by their ids, for everybody: entries or single messages of batches, on each partition."""
    body = call.json()
    _skips(call, {})  # what is wrong with the subscription comes before what is wrong with ids
    ids = read_message_ids(body)
    in_batches = call.broker.config.acknowledgmentAtBatchIndexLevelEnabled
    if not in_batches and any(message_id.batch_index >= 0 for message_id in ids):
        text = "Single messages of a batch cannot be skipped: acknowledgmentAtBatchIndexLevelEnabled is false"
        raise AdminError(405, text)
    asked: defaultdict[int, list[MessageId]] = defaultdict(list)
    for message_id in ids:
        asked[message_id.ledger_id].append(message_id)
    sizes: dict[Position, int] = {}
    while True:
        skips = _skips(call, asked)  # anew: anything may have happened while entries were read
        unknown = [(skip.ledger, position) for skip in skips for position in skip.partial if position not in sizes]
        if not unknown:
            break
        await _read(unknown, sizes)
    for skip in skips:
        skip.check(sizes)
    for skip in skips:
        skip.apply()
    return done()


def _skips(call: Call, asked: Mapping[int, Sequence[MessageId]]) -> list[Skip]:
    """What there is to do, on each partition; `asked`: the ids in each ledger."""
    topics, name = list(each(call)), call.encoded_parameter("subscription")
    if name == COMPACTION_CURSOR or name.startswith(REPLICATOR):
        raise UnsupportedSubscriptionTypeError
    subscriptions = [subscription_of(call, topic, named=str(call.topic)) for topic in topics]
    return [Skip(found, _entries(found, asked)) for found in subscriptions]


def _entries(subscription: PersistentSubscription, asked: Mapping[int, Sequence[MessageId]]) -> list[SkipEntry]:
    """What of it is in a topic's ledgers: a topic may have many partitions, and a body many ids."""
    here = [message_id for ledger_id in subscription.cursor.ledger.ledgers for message_id in asked.get(ledger_id, ())]
    return skip_entries(here, subscription.topic.name.partition_index)


async def _read(entries: Sequence[tuple[ManagedLedger, Position]], sizes: dict[Position, int]) -> None:
    for number, (ledger, position) in enumerate(entries, 1):
        entry = await entry_at(ledger, position)
        if entry is not None:  # else it was trimmed while others were read
            sizes[position] = batch_size(entry)
        await pause_after(number)
