"""Topics and subscriptions over REST."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from ..program import PARTITION, Program
from ..sides import Place
from .values import ANY, PERSISTENT, SELDOM, SUBSCRIPTIONS

DAY_OF_DAYS = 4_102_444_800_000


class Administering(Program):
    """Rules that call the admin API."""

    @rule(
        topic=PERSISTENT, what=st.sampled_from(["create", "create", "unload", "unload", "delete", "force", "terminate"])
    )
    def manage(self, topic: int, what: str) -> None:
        method, path = {
            "create": ("PUT", ""),
            "delete": ("DELETE", "?force=false"),
            "force": ("DELETE", "?force=true"),
            "unload": ("PUT", "/unload"),
            "terminate": ("POST", "/terminate"),
        }[what]
        if what == "terminate":
            self.terminated.add(topic)
        elif what in ("delete", "force"):
            self.filled.discard(self.topic(topic))
        elif what == "unload" and topic in self.terminated and self.topic(topic) not in self.filled:
            return  # Pulsar then answers no SUBSCRIBE to this topic, or answers with an error without text
        elif what == "unload" and topic in self.awaited:
            return  # Pulsar counts waiting producers in the topic epoch
        self.call(method, topic, path)

    @precondition(lambda self: self.partitioned < 3)
    @rule(partitions=st.integers(1, 2))
    def create_partitioned(self, partitions: int) -> None:
        self.partitioned += 1
        self.call("PUT", PARTITION, "/partitions", partitions, whole=True)

    @rule(
        topic=PERSISTENT,
        subscription=SUBSCRIPTIONS,
        what=st.sampled_from(
            ["skip/1", "skip/3", "skip_all", "expireMessages/3600", "resetcursor/1", f"resetcursor/{DAY_OF_DAYS}"]
        ),
    )
    def move_cursor(self, topic: int, subscription: str, what: str) -> None:
        resets = what.startswith("resetcursor")
        if resets and not self.may_move(self.topic(topic), subscription):
            return
        if self.chunks and what.startswith("skip/"):  # Pulsar stalls when only a first chunk is skipped
            what = "skip_all"
        self.call("POST", topic, f"/subscription/{subscription}/{what}")

    @precondition(lambda self: self.pair.ours.places)
    @rule(topic=PERSISTENT, subscription=SUBSCRIPTIONS, number=ANY, exclusive=st.booleans())
    def reset_to_id(self, topic: int, subscription: str, number: int, exclusive: bool) -> None:
        if not self.may_move(self.topic(topic), subscription):
            return
        place = Place(number % len(self.pair.ours.places), extra=(("partitionIndex", -1), ("isExcluded", exclusive)))
        self.call("POST", topic, f"/subscription/{subscription}/resetcursor", place)

    @rule(topic=PERSISTENT, subscription=SUBSCRIPTIONS, delete=SELDOM, force=SELDOM)
    def subscription(self, topic: int, subscription: str, delete: bool, force: bool) -> None:
        if delete:
            self.call("DELETE", topic, f"/subscription/{subscription}?force={str(force).lower()}")
        else:
            self.call("PUT", topic, f"/subscription/{subscription}")

    @rule(topic=PERSISTENT, what=st.sampled_from(["/subscriptions", "/stats", "/internalStats", "/internalStats"]))
    def look_over_rest(self, topic: int, what: str) -> None:
        self.call("GET", topic, what)
