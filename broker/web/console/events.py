"""The latest events of a cluster. What happens often within a moment is one event, with a count."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.namespace.metadata import global_of, local_of
from pulsarium.broker.model.news import Kind, acting
from pulsarium.broker.model.refusals import Refusal
from pulsarium.broker.model.schema.registry import StoredSchema
from pulsarium.proto.special_names import is_system_topic
from pulsarium.proto.topic_name import PERSISTENT, SegmentName, TopicName
from pulsarium.rest.policies import POLICIES

KEPT: Final = 500
MOMENT: Final = 2.0  # seconds after which the same is a new event
LONG_MOMENT: Final = 120.0  # for states that clients run into again and again
NAMED: Final = 3  # topics or subscriptions of an event that it names
MOST_NAMES: Final = 10_000  # that an event tells apart
MOST_OPEN: Final = 1000  # events that may still get a count

WHO: Final = {
    "person": "by a person in the console",
    "test": "by a test",
    "exploration": "by an exploration",
    "program": "over REST",
}
WORDS: Final = {
    row.kept: path.word for row in POLICIES for path in (row.namespace, row.topic) if path is not None and path.word
}

Json = dict[str, Any]
About = Mapping[str, object]


@dataclass(slots=True)
class Event:
    """An event, or several of one kind that came within a moment."""

    number: int
    ms: int
    kind: Kind
    at: float  # when the last one came
    about: dict[str, str] = field(default_factory=dict)
    text: str = ""
    names: dict[str, int] = field(default_factory=dict)  # what it is about, with the number of parts
    count: int = 0

    def to_json(self) -> Json:
        """Return the event as the console shows it. Several have no topic, subscription or client in common."""
        about = self.about if len(self.names) <= 1 else {}
        return {"number": self.number, "ms": self.ms, "kind": self.kind.value, "text": self.text, **about}


class Events:
    """Listen to a cluster, and keep its latest events."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._open: dict[tuple[object, ...], Event] = {}  # by what makes them the same
        self._number = 0
        self._namespaces: dict[str, Json] = {}  # their policies when they last changed

    def begin(self) -> None:
        """Listen from now on."""
        cluster, metadata = self._cluster, self._cluster.metadata
        self._namespaces = dict(metadata.namespaces)
        cluster.news.listen(self._told, *Kind)
        cluster.refusals.listeners.append(self._refused)
        cluster.schemas.listeners.append(self._schema_changed)
        metadata.policies_listeners.append(self._policies_changed)
        metadata.topic_policies_listeners.append(self._topic_policies_changed)

    def stop(self) -> None:
        """Listen no more."""
        cluster, metadata = self._cluster, self._cluster.metadata
        cluster.news.ignore(self._told)
        cluster.refusals.listeners.remove(self._refused)
        cluster.schemas.listeners.remove(self._schema_changed)
        metadata.policies_listeners.remove(self._policies_changed)
        metadata.topic_policies_listeners.remove(self._topic_policies_changed)

    def latest(self, most: int) -> list[Json]:
        """Return events, the newest first."""
        newest = reversed(self._events)
        return [event.to_json() for event, _ in zip(newest, range(most), strict=False)]

    # listening

    def _told(self, kind: Kind, about: About) -> None:
        topic = about.get("topic")
        if isinstance(topic, TopicName):
            if not is_system_topic(topic):
                self._of_topic(kind, topic, about)
        elif kind is Kind.FAULT_HIT:
            text = f"Fault {about['fault']} ({about['words']}) hit"
            one = f"{text} {about['command']} of {about['client']}"
            self._add(kind, (about["fault"],), "", one, lambda event: f"{text} {event.count} frames", about)
        elif kind is Kind.LAB_ACT:
            who = WHO.get(str(about["by"]), "")
            self._add(kind, None, "", f"The lab {about['what']}, {who}", None, about)
        else:
            self._of_client(kind, about)

    def _of_client(self, kind: Kind, about: About) -> None:
        does = "joined" if kind is Kind.CLIENT_JOINED else "left"
        why = f": {about['why']}" if about.get("why") else ""
        one = f"{about['version']} at {about['client']} {does}{why}"
        self._add(kind, (), str(about["client"]), one, lambda event: f"{event.count} clients {does}", about)

    def _of_topic(self, kind: Kind, topic: TopicName, about: About) -> None:
        """Add an event of a topic. Those of the parts of a topic are one event."""
        whole = _whole(topic)
        name, namespace = short(whole), str(topic.namespace_name)
        about = {**about, "topic": str(whole)}
        if kind is Kind.QUOTA_EXCEEDED:
            text = f"The backlog quota ({about['quota']}) of {name} is exceeded: {about['policy']}"
            self._add(kind, (name,), name, text, lambda event: text, about, LONG_MOMENT)
        elif kind is Kind.LOOP_FOUND:
            subscription, message = about["subscription"], about["message"]
            text = f"Message {message} of {name} comes again and again on {subscription}"
            self._add(kind, (name, subscription, message), name, text, lambda event: text, about)
        else:
            does = {Kind.UNLOADED: "unloaded"}.get(kind, "created" if kind in CREATED else "deleted")
            thing, what = "topic", name
            if "subscription" in about:
                thing, what = "subscription", f"{about['subscription']} of {name}"
            after = _after(about) if does == "deleted" else ""
            self._add(
                kind,
                (namespace,),
                what,
                f"{thing.capitalize()} {what} was {does}{after}",
                lambda event: _counted(event, thing, does, namespace, after),
                about,
            )

    def _refused(self, refusal: Refusal) -> None:
        about, full = refusal.about, self._cluster.storage.refusal
        if full and full in refusal.reason:
            self._add(Kind.STORAGE_FULL, (), "", full, lambda event: full, {}, LONG_MOMENT)
        elif refusal.error.startswith("ProducerBlockedQuota"):
            topic = str(about.get("topic", ""))
            text = f"A producer of {topic} was refused: the backlog quota is exceeded"
            self._add(Kind.QUOTA_EXCEEDED, (topic,), topic, text, lambda event: text, {"topic": topic}, LONG_MOMENT)

    def _schema_changed(self, topic: TopicName, schema: StoredSchema) -> None:
        if is_system_topic(topic):
            return
        whole, namespace = _whole(topic), topic.namespace_name
        name = short(whole)
        text = f"{name} has version {schema.version} of its schema: {schema.schema.type}"
        if schema.deleted:
            text = f"The schema of {name} was deleted"
        self._add(
            Kind.SCHEMA_CHANGED,
            (str(namespace),),
            name,
            text,
            lambda event: text if len(event.names) == 1 else f"{len(event.names)} schemas changed in {namespace}",
            {"topic": str(whole)},
        )

    def _policies_changed(self, namespace: str, topic: TopicName | None) -> None:
        if topic is not None:
            return
        before, after = self._namespaces.get(namespace), self._cluster.metadata.namespaces.get(namespace)
        if after is None:
            self._namespaces.pop(namespace, None)
            return
        self._namespaces[namespace] = after
        if before is not None:
            self._add_policies(namespace, _changed(before, after), {})

    def _topic_policies_changed(self, topic: TopicName, before: Json, after: Json | None) -> None:
        if after is not None:
            local = _changed(local_of(before), local_of(after))
            names = [*local, *_changed(global_of(before), global_of(after))]
            self._add_policies(short(topic), names, {"topic": str(topic)})

    def _add_policies(self, where: str, names: list[str], about: About) -> None:
        for name in names:
            text = f"The policy {WORDS.get(name, name)} of {where} was changed{_after({})}"
            self._add(
                Kind.POLICY_CHANGED,
                (where,),
                name,
                text,
                lambda event, text=text: (
                    text  # type: ignore[misc]
                    if len(event.names) == 1
                    else f"{len(event.names)} policies of {where} were changed"
                ),
                about,
            )

    # adding

    def _add(
        self,
        kind: Kind,
        same: tuple[object, ...] | None,
        name: str,
        text: str,
        several: Callable[[Event], str] | None,
        about: About,
        moment: float = MOMENT,
    ) -> None:
        """Add an event, or count it with the same one of a moment ago, whose text `several` returns then."""
        now, key = self._cluster.clock.machine.monotonic(), (kind, *(same or ()))
        event = None if same is None else self._open.get(key)
        if event is None or now - event.at > moment:
            self._number += 1
            shown = {each: str(about[each]) for each in ("topic", "subscription", "client") if about.get(each)}
            event = Event(self._number, self._cluster.clock.now_ms(), kind, now, shown, text)
            self._events.append(event)
            if len(self._open) >= MOST_OPEN:
                self._open.clear()
            self._open[key] = event
        event.at = now
        event.count += 1
        if name in event.names or len(event.names) < MOST_NAMES:
            event.names[name] = event.names.get(name, 0) + 1
        if event.count > 1 and several is not None:
            event.text = several(event)


CREATED: Final = (Kind.TOPIC_CREATED, Kind.SUBSCRIPTION_CREATED)


def _after(about: About) -> str:
    """Return why something was done, or who did it, as the end of a sentence."""
    if why := about.get("why"):
        return f": {why}"
    return f", {WHO[acting()]}" if acting() in WHO else ""


def _counted(event: Event, thing: str, does: str, namespace: str, after: str) -> str:
    """Return the text of several topics or subscriptions, or of one with its parts."""
    first, *names = event.names
    if not names:
        return f"{thing.capitalize()} {first} was {does}{after} ({event.count} parts)"
    if len(event.names) <= NAMED:
        return f"{thing.capitalize()}s {', '.join([first, *names[:-1]])} and {names[-1]} were {does}{after}"
    return f"{len(event.names)} {thing}s were {does} in {namespace}{after}"


def _changed(before: Json, after: Json) -> list[str]:
    """Return the names of the policies that differ."""
    return [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]


def _whole(topic: TopicName) -> TopicName:
    """Return the partitioned or scalable topic of a part, or the topic itself."""
    return SegmentName.of(topic).parent if topic.is_segment else topic.partitioned_name


def short(topic: TopicName) -> str:
    """Return the name of a topic for people: without the domain of most topics."""
    return str(topic).removeprefix(f"{PERSISTENT}://")
