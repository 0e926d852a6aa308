"""The list of topics, in the order that a page asks for: a partitioned or scalable topic is one row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final, NamedTuple

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.samples import Samples
from pulsarium.broker.web.console.waiting import WaitingTimes
from pulsarium.proto.special_names import is_system_topic
from pulsarium.proto.topic_name import PARTITION, SCALABLE, SEGMENT, TopicName

REST_MS: Final = 600_000
"""A topic without clients, backlog and new messages for this long is idle."""
LASTS_MS: Final = 10_000  # the longest time for which an order of the list is kept
NEAR: Final = 0.9  # of 1, how alike near names are
MOST_NEAR: Final = 5
LASTING: Final = ("name", "backlog")
"""Orders that do not change while nothing moves."""
SORTS: Final = (*LASTING, "in", "out", "age", "stuck")


@dataclass(frozen=True, slots=True)
class Row:
    """A topic of the list."""

    name: str
    namespace: str
    partitions: int
    system: bool


class Late(NamedTuple):
    """A subscription that has waited for too long, and the row of its topic."""

    row: str
    topic: str
    subscription: Subscription


class Query(NamedTuple):
    """The rows that a page asks for."""

    part: str = ""
    namespace: str = ""
    sort: str = "name"
    idle: bool = True
    system: bool = False


@dataclass(slots=True)
class Found:
    """The rows of a query, in order, and counts of all rows."""

    rows: list[Row]
    idle: int
    users: int
    systems: int
    namespaces: Mapping[str, int]


class Listing:
    """Rows of all topics. What takes a step for each topic is kept until something changes."""

    def __init__(self, cluster: Cluster, samples: Samples, waiting: WaitingTimes) -> None:
        self._cluster = cluster
        self._samples = samples
        self._waiting = waiting
        self._rows: dict[str, Row] = {}
        self._rows_of: object = None
        self._found: dict[Query, Found] = {}
        self._found_of: object = None
        self._at_work: set[str] = set()
        self._at_work_of: object = None
        self._late: list[Late] = []
        self._late_of: object = None

    async def rows(self, slice_: Slice) -> Mapping[str, Row]:
        """Return all rows by the name of the topic, in the order of namespaces and names."""
        cluster = self._cluster
        about = (
            cluster.moves.names,
            len(cluster.metadata.partitioned),
            len(cluster.metadata.namespaces),
            len(cluster.scalable.all()),
            cluster.clock.now_ms() // LASTS_MS,
        )
        if about != self._rows_of:
            self._rows = await self._read_rows(slice_)
            self._rows_of = about
        return self._rows

    async def _read_rows(self, slice_: Slice) -> dict[str, Row]:
        cluster, found = self._cluster, dict[str, Row]()
        partitioned = cluster.metadata.partitioned
        of_namespace: dict[str, list[str]] = defaultdict(list)
        for name in list(partitioned):
            of_namespace[_namespace_of(name)].append(name)
            await slice_.pause()
        for namespace in sorted(cluster.metadata.namespaces):
            names = {
                *cluster.scalable.names(namespace),
                *cluster.topics.names(namespace, non_persistent=True),
                *of_namespace[namespace],
            }
            rows = set[str]()
            for name in names:
                rows.add(self.row_of(name))
                await slice_.pause()
            for name in sorted(rows):
                partitions = int(partitioned[name]["partitions"]) if name in partitioned else 0
                found[name] = Row(name, namespace, partitions, is_system_topic(TopicName.parse(name)))
                await slice_.pause()
        return found

    def row_of(self, topic: str) -> str:
        """Return the row of a topic: its partitioned or scalable topic, or the topic itself."""
        if topic.startswith(f"{SEGMENT}://"):
            return f"{SCALABLE}{topic.removeprefix(SEGMENT).rpartition('/')[0]}"
        whole, mark, number = topic.rpartition(PARTITION)
        return whole if mark and number.isdecimal() and whole in self._cluster.metadata.partitioned else topic

    async def find(self, query: Query, slice_: Slice) -> Found:
        """Return the rows that a page asks for."""
        rows = await self.rows(slice_)
        now_ms = self._cluster.clock.now_ms()
        about = (self._samples.edition, self._rows_of, now_ms // LASTS_MS)
        if about != self._found_of:
            self._found, self._found_of = {}, about
        if query in self._found and query.sort in LASTING:
            return self._found[query]
        found = self._found[query] = await self._find(rows, query, slice_)
        return found

    async def _find(self, rows: Mapping[str, Row], query: Query, slice_: Slice) -> Found:
        at_work, found = await self.at_work(slice_), list[Row]()
        idle = users = 0
        namespaces = Counter[str]()
        for row in rows.values():
            users += not row.system
            if row.system and not query.system:
                continue
            namespaces[row.namespace] += 1
            if query.part in row.name and query.namespace in ("", row.namespace):
                rests = row.name not in at_work
                idle += rests
                if query.idle or not rests:
                    found.append(row)
            await slice_.pause()
        if query.sort != "name":
            values = await self._values(query.sort, slice_)
            found.sort(key=lambda row: -values.get(row.name, 0))
        return Found(found, idle, users, len(rows) - users, namespaces)

    async def at_work(self, slice_: Slice) -> set[str]:
        """Return the rows that are not idle."""
        now_ms = self._cluster.clock.now_ms()
        about = (self._samples.edition, self._rows_of, now_ms // LASTS_MS)
        if about != self._at_work_of:
            self._at_work = await self._read_at_work(now_ms - REST_MS, slice_)
            self._at_work_of = about
        return self._at_work

    async def _read_at_work(self, since: int, slice_: Slice) -> set[str]:
        found = set[str]()
        for name, known in list(self._samples.topics.items()):
            if known.used or known.backlog or known.published_ms > since:
                found.add(self.row_of(name))
            await slice_.pause()
        return found

    async def _values(self, sort: str, slice_: Slice) -> Mapping[str, float]:
        """Return the values of rows to sort by; absent ones are 0."""
        found: dict[str, float] = defaultdict(float)
        samples = self._samples
        if sort == "backlog":
            for name, known in list(samples.topics.items()):
                if known.backlog:
                    found[self.row_of(name)] += known.backlog
                await slice_.pause()
        elif sort == "stuck":
            for late in await self.late(slice_):
                found[late.row] += 1
        elif sort == "age":
            for topic, subscription in self._waiting_ones():
                row = self.row_of(topic)
                found[row] = max(found[row], self._waiting.age(subscription))
                await slice_.pause()
        else:
            for key in list(samples.moving()):
                if isinstance(key, str):
                    rates = samples.rates(key)
                    found[self.row_of(key)] += rates.messages_in if sort == "in" else rates.messages_out
                await slice_.pause()
        return found

    def _waiting_ones(self) -> Iterator[tuple[str, Subscription]]:
        """Yield the subscriptions with a backlog, with their topics."""
        for key in list(self._samples.with_backlog):
            topic, name = key
            loaded = self._cluster.topics.loaded.get(topic)
            subscription = None if loaded is None else loaded.subscriptions.get(name)
            if subscription is not None:
                yield topic, subscription

    async def late(self, slice_: Slice) -> list[Late]:
        """Return the subscriptions that have waited for too long."""
        about = (self._samples.edition, self._cluster.clock.now_ms() // 1000)
        if about != self._late_of:
            found = []
            for topic, subscription in self._waiting_ones():
                if self._waiting.is_late(subscription):
                    found.append(Late(self.row_of(topic), topic, subscription))
                await slice_.pause()
            self._late, self._late_of = found, about
        return self._late

    async def busiest(self, most: int, slice_: Slice) -> list[str]:
        """Return the rows that moved most in the last minute."""
        heat: dict[str, float] = defaultdict(float)
        for name in list(self._samples.hot):
            if warm := self._samples.heat(name):
                heat[self.row_of(name)] += warm
            await slice_.pause()
        return nlargest(most, heat, key=heat.__getitem__)


def _namespace_of(name: str) -> str:
    return "/".join(name.partition("://")[2].split("/", 2)[:2])


async def near_names(name: str, known: Iterable[str], slice_: Slice) -> list[str]:
    """Return existing names that are close to one that does not exist, the closest first."""
    found: list[tuple[float, str]] = []
    compared = SequenceMatcher(autojunk=False)
    compared.set_seq2(name.lower())
    for each in list(known):
        compared.set_seq1(each.lower())
        if compared.real_quick_ratio() >= NEAR and compared.quick_ratio() >= NEAR and compared.ratio() >= NEAR:
            found.append((compared.ratio(), each))
        await slice_.pause()
    return [each for _, each in nlargest(MOST_NEAR, found)]
