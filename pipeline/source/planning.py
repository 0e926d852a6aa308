"""Plan a stream's micro-batches in the driver: ends of topics, lost data, sizes, and where to cut."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from pulsarium.client import Client, InitialPosition
from pulsarium.client.admin.errors import AdminError
from pulsarium.client.errors import TopicNotFound
from pulsarium.pipeline.options import ADMIN_URL, BadOption
from pulsarium.pipeline.source import lag
from pulsarium.pipeline.source import ledgers as in_ledgers
from pulsarium.pipeline.source.cutting import Cutting
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.losses import LossCheck, expecting
from pulsarium.pipeline.source.offsets import Offset, Split, TopicOffset, decode, encode, splits
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import FIRST, Earliest, Latest, Position, end_of, position_of
from pulsarium.pipeline.source.subscription import Subscription
from pulsarium.pipeline.source.topics import each


class Planner:
    """Planner of one run of a query.

    Offsets hold everything that a replay needs. The planner's own state is asked for again after a restart.
    """

    def __init__(self, client: Client, options: SourceOptions) -> None:
        self._client = client
        self._options = options
        self._loss = LossCheck(fail=options.fail_on_data_loss)
        holds_back = options.has_admin and options.fail_on_data_loss  # matters in this case only, see Ledgers.lost_from
        self._subscription = Subscription(client, options.subscription, holds_back=holds_back)
        self._cutting = Cutting(client, options)
        self._topics: Sequence[str] = ()
        self._looked: float | None = None
        self._checked = False
        self._warned = False
        self._targets: Mapping[str, Position] | None = None
        self._found: dict[str, Ledgers] = {}
        self._ends: Mapping[str, Position] = {}
        self._reached: Mapping[str, Position] = {}

    async def aclose(self) -> None:
        await self._subscription.aclose()

    async def initial(self) -> Offset:
        """Return where a stream without checkpoint begins, and seek the subscription to it."""
        topics = await self._find(anew=True)
        self._options.start.check(topics, "startingOffsets")
        starts = await each(topics, self._start_of)
        starts |= await self._firsts(topic for topic, start in starts.items() if start == FIRST)
        if not self._options.is_predefined:
            await self._warn_of_others(topics)  # before the seek, which disconnects all consumers for a moment
            await self._subscription.begin(starts)
        return encode({topic: TopicOffset(start) for topic, start in starts.items()})

    async def stop_at_present(self) -> None:
        """End this run at the present ends of the topics, for Trigger.AvailableNow.

        Spark calls this before `initial`, which checks whether the subscription exists. So it must not be created here.
        """
        topics = await self._find(anew=True)
        self._targets = await each(topics, lambda topic: position_of(self._client, topic, Latest()))

    async def latest(self, start: Offset, most_bytes: int, most_messages: int) -> Offset:
        """Return where the next micro-batch ends, or `start` when there are no new messages.

        `most_bytes` and `most_messages` limit the batch; 0 is no limit. Everything before `start` is processed, because
        Spark has recorded that.
        """
        done = {topic: one.next for topic, one in decode(start).items()}
        topics, ends = await self._topics_with_ends()
        gone = set(done) - set(topics)
        self._loss.topics(sorted(gone), done)
        begins = {topic: done.get(topic, FIRST) for topic in topics}
        self._ends, self._reached = ends, begins
        if self._targets is not None:
            ends = {topic: min(end, self._targets.get(topic, FIRST)) for topic, end in ends.items()}
        new = {topic: (begins[topic], end) for topic, end in ends.items() if end > begins[topic]}
        await self._warn_of_others(topics)
        ledgers = await self._ledgers(new if self._checked else topics)
        self._check(done, ledgers)
        known = {topic: place for topic, place in begins.items() if topic in done}
        await self._subscription.move_up(known, ledgers)
        if not new:
            return start if not gone else {topic: start[topic] for topic in start if topic not in gone}
        if most_bytes:
            new = _limited(new, ledgers, most_bytes)
        if most_messages:
            new = await self._cutting.limited(new, ledgers, most_messages)
        self._reached = begins | {topic: end for topic, (_, end) in new.items()}
        cuts = await self._cutting.cuts(new, ledgers)
        reached = {topic: TopicOffset(end, cuts[topic]) for topic, (_, end) in new.items()}
        return encode({topic: TopicOffset(place) for topic, place in known.items()} | reached)

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
        if self._checked or not self._options.has_admin:
            return
        there = set(await self._find())
        done = {topic: one.next for topic, one in decode(start).items()}
        self._loss.topics(sorted(set(end) - there), {topic: done.get(topic, FIRST) for topic in end})
        self._check(done, await self._ledgers(topic for topic in end if topic in there))

    def splits(self, start: Offset, end: Offset) -> list[Split]:
        """Return the splits between two offsets, with the entries that they are known to have."""
        return expecting(splits(start, end), self._found)

    # ---- internals

    async def _topics_with_ends(self) -> tuple[Sequence[str], dict[str, Position]]:
        """Return the topics and their ends. Raise `NoSuchTopic` for a topic that was deleted."""
        topics = await self._find()
        try:
            return topics, await each(topics, self._end_of)
        except TopicNotFound:  # deleted since the last look
            topics = await self._find(anew=True)
            return topics, await each(topics, self._end_of)

    async def _find(self, *, anew: bool = False) -> Sequence[str]:
        now = time.monotonic()
        if anew or self._looked is None or now - self._looked >= self._options.discovery_interval:
            self._topics = await self._options.topics.find(self._client)
            self._looked = now
        return self._topics

    async def _start_of(self, topic: str) -> Position:
        """Return the start of a topic: where an existing subscription stands, or what the options say."""
        place, name = self._options.start.of(topic), self._options.subscription
        if not self._options.is_predefined:
            return await position_of(self._client, topic, place)
        if not isinstance(place, Earliest | Latest):
            if not self._options.has_admin:
                raise BadOption(
                    "a new predefinedSubscription begins at earliest or latest; any other start needs "
                    f'.option("{ADMIN_URL}", ...)'
                )
            if name not in await self._client.admin.topics.get_subscriptions(topic):
                start = await position_of(self._client, topic, place)
                await self._subscription.begin({topic: start})
                return start
        initial = InitialPosition.Earliest if place == Earliest() else InitialPosition.Latest
        await self._subscription.join(topic, initial)
        _, done = await self._subscription.last_message(topic)
        if done is None:
            raise BadOption(f"{topic}: the broker does not tell the position of {name}: omit predefinedSubscription")
        start = Position(*done.entry).next_entry if done.ledger_id >= 0 else FIRST
        ledgers = (await self._ledgers([topic])).get(topic)
        # messages before the subscription's own position are not lost
        return (ledgers and ledgers.lost_from(start)) or start

    async def _firsts(self, topics: Iterable[str]) -> dict[str, Position]:
        """Return the first positions of these topics, if known, so that a later loss of unread messages shows."""
        ledgers = await self._ledgers(topics)
        return {topic: Position(found.all[0].id, 0) for topic, found in ledgers.items() if found.all}

    async def _end_of(self, topic: str) -> Position:
        last, _ = await self._subscription.last_message(topic)
        return end_of(last) or FIRST

    async def _ledgers(self, topics: Iterable[str]) -> dict[str, Ledgers]:
        if not self._options.has_admin:
            return {}
        found = await each(topics, lambda topic: Ledgers.ask(self._client, topic))
        self._found |= found
        return found

    async def _warn_of_others(self, topics: Sequence[str]) -> None:
        """Warn once of other consumers of the subscription."""
        if self._options.has_admin and not self._warned:
            self._warned = True
            await self._subscription.warn_of_others(topics)

    def _check(self, done: Mapping[str, Position], ledgers: Mapping[str, Ledgers]) -> None:
        found = {topic: one for topic, one in ledgers.items() if topic in done}
        self._loss.ledgers(done, found, self._options.subscription)
        self._checked = True


def _limited(
    new: Mapping[str, tuple[Position, Position]], ledgers: Mapping[str, Ledgers], most: int
) -> dict[str, tuple[Position, Position]]:
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
