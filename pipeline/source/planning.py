"""Plan a stream's micro-batches in the driver: ends of topics, lost data, sizes, and where to cut."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import anyio

from pulsarium.client import Client, InitialPosition, PulsarError
from pulsarium.client.admin.errors import AdminError
from pulsarium.client.bulk import first_entry
from pulsarium.client.errors import TopicNotFound
from pulsarium.pipeline.options import ADMIN_URL, BadOption
from pulsarium.pipeline.source import lag
from pulsarium.pipeline.source import ledgers as in_ledgers
from pulsarium.pipeline.source.cutting import Cutting
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.losses import LossCheck, expecting
from pulsarium.pipeline.source.offsets import (
    Offset,
    TopicOffset,
    TopicRange,
    begins,
    decode,
    encode,
    splits,
    subscription_of,
)
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import FIRST, Earliest, EndOfTopic, ReadPosition, position_of
from pulsarium.pipeline.source.subscription import SourceSubscription, SubscriptionLook
from pulsarium.pipeline.source.topics import each


class Planner:
    """Planner of one run of a query.

    Offsets hold everything that a replay needs. The planner's own state is asked for again after a restart.
    """

    def __init__(self, client: Client, options: SourceOptions) -> None:
        self._client = client
        self._options = options
        self._loss = LossCheck(fail=options.fail_on_data_loss)
        self._subscription: SourceSubscription | None = None
        self._cutting = Cutting(client, options)
        self._topics: Sequence[str] = ()
        self._looked: float | None = None
        self._initial: Offset | None = None
        self._targets: Mapping[str, ReadPosition] | None = None
        self._found: dict[str, Ledgers] = {}
        self._ends: Mapping[str, ReadPosition] = {}
        self._starts: Mapping[str, ReadPosition] = {}
        self._reached: Mapping[str, ReadPosition] = {}
        self._lost: dict[str, ReadPosition] = {}
        """Start of the loss of each topic that the log has reported."""

    async def aclose(self) -> None:
        if self._subscription is not None:
            await self._subscription.aclose()

    async def initial(self) -> Offset:
        """Return where a query without committed batches begins.

        Spark asks this several times, and again when the first batch is repeated. So the query's own subscription is
        made by `latest`.
        """
        if self._initial is None:
            topics = await self._find(anew=True)
            self._options.start.check(topics, "startingOffsets")
            starts = await each(topics, self._start_of)
            name = self._options.new_subscription()
            self._initial = encode({topic: TopicOffset(start) for topic, start in starts.items()}, name)
        return self._initial

    async def stop_at_present(self) -> None:
        """End this run at the present ends of the topics, for Trigger.AvailableNow.

        Spark calls this before `initial`, which checks whether the subscription exists. So it must not be created here.
        """
        topics = await self._find(anew=True)
        self._targets = await each(topics, lambda topic: position_of(self._client, topic, EndOfTopic()))

    async def latest(self, start: Offset, most_bytes: int, most_messages: int) -> Offset:
        """Return where the next micro-batch ends, or `start` when there are no new messages.

        `most_bytes` and `most_messages` limit the batch; 0 is no limit. Everything before `start` is processed, because
        Spark has recorded that.
        """
        subscription = self._subscription_of(start)
        if start != self._initial or self._options.is_predefined or subscription.has_begun:
            return await self._latest(start, most_bytes, most_messages)
        try:
            await subscription.seek({topic: one.next for topic, one in decode(start).items()})
            return await self._latest(start, most_bytes, most_messages)
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(PulsarError):
                await subscription.delete()  # no checkpoint has its name yet, so no later run would find it
            raise

    async def _latest(self, start: Offset, most_bytes: int, most_messages: int) -> Offset:
        subscription = self._subscription_of(start)
        before = decode(start)
        done = {topic: one.next for topic, one in before.items()}
        topics, looks = await self._topics_with_looks(subscription)
        gone = set(done) - set(topics)
        self._loss.topics(sorted(gone), done)
        starts = {topic: done.get(topic, FIRST) for topic in topics}
        is_first = not self._ends  # then the topic may be another one with exactly as many messages
        ledgers = await self._ledgers(topic for topic in topics if is_first or looks[topic].end != starts[topic])
        starts = await self._checked(starts, looks, subscription, before, ledgers)
        ends = {topic: look.end for topic, look in looks.items()}
        self._ends, self._starts, self._reached = ends, starts, starts
        if self._targets is not None:
            ends = {topic: min(end, self._targets.get(topic, FIRST)) for topic, end in ends.items()}
        new = {topic: (starts[topic], end) for topic, end in ends.items() if end > starts[topic]}
        # a topic without messages may begin in another ledger when it has some
        known = {topic: FIRST if done[topic] == FIRST else starts[topic] for topic in topics if topic in done}
        await subscription.move_up(known, ledgers)
        kept = {topic: TopicOffset(place, opened=before[topic].opened) for topic, place in known.items()}
        if not new:
            return encode(kept, subscription.name) if gone else start
        if most_bytes:
            new = _limited(new, ledgers, most_bytes)
        if most_messages:
            new = await self._cutting.limited(new, ledgers, most_messages)
        self._reached = starts | {topic: end for topic, (_, end) in new.items()}
        cuts = await self._cutting.cuts(new, ledgers)
        for topic, (begin, end) in new.items():
            is_stored = start != self._initial and begin == done.get(topic)
            opened = ledgers[topic].opening_of(end.ledger) if topic in ledgers else ""
            kept[topic] = TopicOffset(end, cuts[topic], None if is_stored else begin, opened)
        return encode(kept, subscription.name)

    async def report(self) -> dict[str, dict[str, str]] | None:
        """Return the ends of the topics at the last batch, and the lag of the batch behind them. None: no batch yet."""
        if not self._ends:
            return None
        behind = {topic: end for topic, end in self._ends.items() if self._reached[topic] < end}
        try:
            ledgers = await self._ledgers(behind)
        except AdminError:  # such as a topic that was deleted meanwhile: the next batch reports it
            return {topic: {"next": str(self._ends[topic])} for topic in sorted(self._ends)}

        async def measured(topic: str) -> dict[str, str]:
            end = {"next": str(self._ends[topic])}
            if topic in self._loss.reports:
                end["dataLosses"] = str(self._loss.reports[topic])
            if not self._options.has_admin:
                return end
            if topic not in behind:
                return end | lag.NONE.encode()
            found = await lag.lag_of(self._client, topic, self._reached[topic], self._ends[topic], ledgers[topic])
            return end | found.encode()

        return await each(sorted(self._ends), measured)

    async def check(self, start: Offset, end: Offset) -> None:
        """Raise `DataLoss` when messages of a replayed micro-batch are gone."""
        starts = begins(start, end)
        # Spark also calls with the newest offset of its checkpoint twice
        if start == end or all(self._starts.get(topic) == place for topic, place in starts.items()):
            return
        there = [topic for topic in await self._find() if topic in starts]
        self._loss.topics(sorted(set(starts) - set(there)), starts)
        subscription = self._subscription_of(end)
        looks = await each(there, subscription.look)
        ledgers = await self._ledgers(there)
        await self._checked({topic: starts[topic] for topic in there}, looks, subscription, decode(end), ledgers)

    def splits(self, start: Offset, end: Offset) -> list[TopicRange]:
        """Return the splits between two offsets, with the entries that they are known to have."""
        return expecting(splits(start, end), self._found)

    # ---- internals

    def _subscription_of(self, kept: Offset) -> SourceSubscription:
        """Return the subscription that an offset names. Raise `BadOption` when the options name another one."""
        name = subscription_of(kept)
        if self._options.is_predefined and name != self._options.subscription:
            raise BadOption(
                f"the subscription of the checkpoint is {name}, and predefinedSubscription is "
                f"{self._options.subscription}: omit predefinedSubscription, or use another checkpointLocation"
            )
        return self._subscription_named(name)

    def _subscription_named(self, name: str) -> SourceSubscription:
        if self._subscription is None or self._subscription.name != name:
            self._subscription = SourceSubscription(self._client, name)
        return self._subscription

    async def _checked(
        self,
        starts: Mapping[str, ReadPosition],
        looks: Mapping[str, SubscriptionLook],
        subscription: SourceSubscription,
        kept: Mapping[str, TopicOffset],
        ledgers: Mapping[str, Ledgers],
    ) -> dict[str, ReadPosition]:
        """Return the starts, with the first position in place of FIRST. Raise `DataLoss`, or log a warning.

        The broker keeps everything that the subscription has not passed. A subscription that has passed a start was
        skipped, moved or made anew, or its messages expired. It is moved back, and as far as the broker does not
        allow that, data is lost. A topic that ends before its start, or whose ledger of the `kept` offset was opened
        at another time, is another topic.
        """
        passed = {topic: start for topic, start in starts.items() if looks[topic].has_passed(start)}
        passed = {topic: start for topic, start in passed.items() if self._lost.get(topic) != start}
        await subscription.seek(passed)
        back = dict(looks) | await each(passed, subscription.look)
        lost = {
            topic: first for topic in passed if (first := back[topic].first) and back[topic].has_passed(starts[topic])
        }
        self._loss.positions(starts, lost)
        signs = {
            topic: _replacement(start, looks[topic].end, kept.get(topic), ledgers.get(topic))
            for topic, start in starts.items()
        }
        replaced = {topic: sign for topic, sign in signs.items() if sign}
        self._loss.replaced(starts, replaced)
        self._lost |= {topic: starts[topic] for topic in (*lost, *replaced)}
        return {
            topic: back[topic].first or FIRST if start == FIRST or topic in replaced else start
            for topic, start in starts.items()
        }

    async def _topics_with_looks(
        self, subscription: SourceSubscription
    ) -> tuple[Sequence[str], dict[str, SubscriptionLook]]:
        """Return the topics, and what the broker tells of each. Raise `NoSuchTopic` for a topic that was deleted."""
        topics = await self._find()
        try:
            return topics, await each(topics, subscription.look)
        except TopicNotFound:  # deleted since the last look
            topics = await self._find(anew=True)
            return topics, await each(topics, subscription.look)

    async def _find(self, *, anew: bool = False) -> Sequence[str]:
        now = time.monotonic()
        if anew or self._looked is None or now - self._looked >= self._options.discovery_interval:
            self._topics = await self._options.topics.find(self._client)
            self._looked = now
        return self._topics

    async def _start_of(self, topic: str) -> ReadPosition:
        """Return the start of a topic: where an existing subscription stands, or what the options say."""
        place, name = self._options.start.of(topic), self._options.subscription
        if not self._options.is_predefined:
            return await position_of(self._client, topic, place)
        subscription = self._subscription_named(name)
        if not isinstance(place, Earliest | EndOfTopic):
            if not self._options.has_admin:
                raise BadOption(
                    "a new predefinedSubscription begins at earliest or latest; any other start needs "
                    f'.option("{ADMIN_URL}", ...)'
                )
            if name not in await self._client.admin.topics.get_subscriptions(topic):
                start = await position_of(self._client, topic, place)
                await subscription.seek({topic: start})
                return start
        initial = InitialPosition.Earliest if place == Earliest() else InitialPosition.Latest
        await subscription.join(topic, initial)
        end, at = await subscription.look(topic)
        if at is None:
            raise BadOption(f"{topic}: the broker does not tell the position of {name}: omit predefinedSubscription")
        if end == FIRST:
            return FIRST
        if at >= end:  # hold the last entry, because the broker may delete a ledger that has nothing else to keep
            await subscription.seek({topic: end})
            return end
        first = await first_entry(self._client, topic)  # the broker may have deleted what the subscription has passed
        return max(at, ReadPosition(*first)) if first else at

    async def _ledgers(self, topics: Iterable[str]) -> dict[str, Ledgers]:
        if not self._options.has_admin:
            return {}
        found = await each(topics, lambda topic: Ledgers.ask(self._client, topic))
        self._found |= found
        return found


def _replacement(start: ReadPosition, end: ReadPosition, before: TopicOffset | None, ledgers: Ledgers | None) -> str:
    """Return what tells that a topic is another one than that of an offset, or "" when nothing does."""
    if FIRST < end < start:
        return f"the topic now ends at {end}"
    if before is None or ledgers is None:
        return ""
    ledger = before.next.ledger
    opened = ledgers.opening_of(ledger)
    if "" in (opened, before.opened) or opened == before.opened:
        return ""
    return f"its ledger {ledger} was opened at {opened}, and that of the checkpoint at {before.opened}"


def _limited(
    new: Mapping[str, tuple[ReadPosition, ReadPosition]], ledgers: Mapping[str, Ledgers], most: int
) -> dict[str, tuple[ReadPosition, ReadPosition]]:
    """Return ranges that have about `most` bytes together.

    Each topic has a share by its size, and at least one entry, because a big entry would never be read otherwise.
    """
    runs = {topic: ledgers[topic].runs(start, end) for topic, (start, end) in new.items()}
    sizes = {topic: in_ledgers.size(found) for topic, found in runs.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(new)
    return {
        topic: (
            start,
            min(end, in_ledgers.within_bytes(runs[topic], most * sizes[topic] / total)) if runs[topic] else end,
        )
        for topic, (start, end) in new.items()
    }
