"""The list of scenarios of scalable topics, and steps that several of them take."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Answer, Connection, Recorder, Scenario
from pulsarium.conformance.recordings.scenarios.common import lists_in

FLAGS = {
    "supports_auth_refresh": True,
    "supports_broker_entry_metadata": True,
    "supports_partial_producer": True,
    "supports_topic_watchers": True,
    "supports_get_partitioned_metadata_without_auto_creation": True,
    "supports_scalable_topics": True,
    "supports_tc_metadata_discovery": True,
}
V5 = [{"key": "__pulsar.v5.managed", "value": "true"}]

SCENARIOS: dict[int, Scenario] = {}
scenario = lists_in(SCENARIOS)


# Topics of missing namespaces, which several scenarios share
IN_MISSING_NAMESPACES = ("tr/no-such-namespace/t", "tr/no-such-namespace/x", "no-such-tenant/ns/x")


def forget_topics_of_missing_namespaces(s: Recorder) -> None:
    """Delete what other scenarios may have created, without a trace in the recording."""
    with s.unrecorded():
        for name in IN_MISSING_NAMESPACES:
            s.http("DELETE", f"/admin/v2/scalable/{name}?force=true")


def connected(s: Recorder, name: str, **more: Any) -> Connection:
    """Connect as a V5 client does."""
    return s.conn(name, flags=FLAGS, **more)


def top(s: Recorder, suffix: str = "", domain: str = "topic") -> str:
    return f"{domain}://{s.ns}/t{suffix}"


def seg(s: Recorder, start: int, end: int, number: int, suffix: str = "") -> str:
    return f"segment://{s.ns}/t{suffix}/{start:04x}-{end:04x}-{number}"


def on_topic(s: Recorder, method: str, suffix: str = "", tail: str = "", body: Any = None) -> Any:
    """Call a route of a scalable topic."""
    return s.rest(method, f"/admin/v2/scalable/{s.ns}/t{suffix}{tail}", body)


def on_segment(s: Recorder, method: str, descriptor: str, tail: str = "", suffix: str = "", body: Any = None) -> Any:
    """Call a route of a segment."""
    return s.rest(method, f"/admin/v2/segments/{s.ns}/t{suffix}/{descriptor}{tail}", body)


def create(s: Recorder, n: int = 1, suffix: str = "", body: Any = None) -> Any:
    return on_topic(s, "PUT", suffix, f"?numInitialSegments={n}", body)


def look_up(c: Connection, topic: str, sid: int = 1, t: float = 4, **more: Any) -> Answer:
    c.send("SCALABLE_TOPIC_LOOKUP", session_id=sid, topic=topic, **more)
    return update(c, sid, t)


def update(c: Connection, sid: int = 1, t: float = 4) -> Answer:
    """Wait for the next layout that a lookup session gets."""
    name = "SCALABLE_TOPIC_UPDATE"
    return c.wait(lambda f: f.type == name and f.cmd.session_id == sid, t, f"{name} of session {sid}")


def join(
    c: Connection,
    topic: str,
    sub: str = "s",
    name: str = "c1",
    cid: int = 1,
    type: str = "STREAM",
    t: float = 6,
) -> Answer:
    """Register a consumer with the controller of a topic."""
    fields = {"topic": topic, "subscription": sub, "consumer_name": name, "consumer_id": cid, "consumer_type": type}
    return c.req("SCALABLE_TOPIC_SUBSCRIBE", t=t, **fields)
