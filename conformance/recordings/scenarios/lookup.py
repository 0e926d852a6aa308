"""Lookup, partitioned metadata, and lists of topics."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import scenario


@scenario(
    17,
    "LOOKUP of absent, existing, non-persistent, partitioned parent, a partition, a partition out of range, "
    "authoritative",
)
def lookup_basic(s: Recorder) -> None:
    c = s.conn("A")

    def look_up(t: Any, **k: Any) -> Any:
        return c.req("LOOKUP", topic=t, **k)

    look_up(s.topic("absent"))
    s.say("did it create the topic?")
    s.topics()
    s.admin("PUT", "", topic=s.topic("plain"))
    look_up(s.topic("plain"))
    look_up(s.topic("plain"), authoritative=True)
    look_up(s.topic("x", "non-persistent"))
    s.admin("PUT", "/partitions", 3, topic=s.topic("part"))
    look_up(s.topic("part"))
    look_up(s.topic("part-partition-0"))
    look_up(s.topic("part-partition-9"))
    look_up(s.topic("plain-partition-0"))
    s.topics()


@scenario(18, "LOOKUP and PARTITIONED_METADATA with odd and invalid topic names", warm=False)
def lookup_names(s: Recorder) -> None:
    c = s.conn("A")
    for t in (
        "",
        "short",
        "public/default/mid",
        "a/b",
        "persistent://",
        "persistent://public/default",
        "persistent://public/default/",
        "persistent://public/default/a/b",
        "persistent://public//x",
        "http://public/default/x",
        "Persistent://public/default/x",
        "persistent://public/default/with space",
        "persistent://public/default/ü",
        "persistent://public/default/a%2Fb",
        "persistent://pub lic/default/x",
        "topic://public/default/x",
        "segment://public/default/x",
    ):
        if not c.open:
            c = s.conn("A'" + t[:12])
        c.req("LOOKUP", topic=t, t=2)
        if not c.open:
            c = s.conn("A''" + t[:12])
        c.req("PARTITIONED_METADATA", topic=t, metadata_auto_creation_enabled=False, t=2)


@scenario(
    19,
    "LOOKUP, PARTITIONED_METADATA, PRODUCER, SUBSCRIBE, GET_TOPICS for a missing namespace and a missing tenant",
    warm=False,
)
def lookup_namespace_missing(s: Recorder) -> None:
    c = s.conn("A")
    for t in ("persistent://tr/nonesuch/t", "persistent://nonesuch/ns/t"):
        c.req("LOOKUP", topic=t)
        c.req("PARTITIONED_METADATA", topic=t)
        c.req("PARTITIONED_METADATA", topic=t, metadata_auto_creation_enabled=False)
        c.prod(t)
        c.sub(t)
        c.req("GET_TOPICS_OF_NAMESPACE", namespace=t[13:-2])
        c.req("GET_SCHEMA", topic=t)


@scenario(20, "LOOKUP with advertised_listener_name unknown / empty / internal, properties", warm=False)
def lookup_listener(s: Recorder) -> None:
    c = s.conn("A")
    for n in ("nonesuch", "", "internal"):
        c.req("LOOKUP", topic=s.topic(), advertised_listener_name=n)
    c.req("LOOKUP", topic=s.topic(), properties=[{"key": "k", "value": "v"}])


@scenario(
    21,
    "PARTITIONED_METADATA: absent with auto-creation default/true/false, existing, parent, partition, "
    "non-persistent; what it creates",
)
def partitioned_metadata(s: Recorder) -> None:
    c = s.conn("A")

    def ask(t: Any, **k: Any) -> Any:
        return c.req("PARTITIONED_METADATA", topic=t, **k)

    def topics() -> Any:
        return s.rest("GET", f"/admin/v2/persistent/{s.ns}?includeSystemTopic=true")

    ask(s.topic("a"), metadata_auto_creation_enabled=False)
    topics()
    ask(s.topic("a"))
    topics()
    ask(s.topic("b"), metadata_auto_creation_enabled=True)
    topics()
    ask(s.topic("np", "non-persistent"), metadata_auto_creation_enabled=False)
    ask(s.topic("np", "non-persistent"))
    s.admin("PUT", "", topic=s.topic("plain"))
    ask(s.topic("plain"), metadata_auto_creation_enabled=False)
    s.admin("PUT", "/partitions", 3, topic=s.topic("part"))
    ask(s.topic("part"))
    ask(s.topic("part-partition-1"))
    ask(s.topic("part-partition-1"), metadata_auto_creation_enabled=False)
    ask(s.topic("part-partition-7"), metadata_auto_creation_enabled=False)
    ask(s.topic("absent-partition-0"), metadata_auto_creation_enabled=False)
    ask(s.topic("absent-partition-0"))
    s.admin("POST", "/partitions", 5, topic=s.topic("part"))
    ask(s.topic("part"))


@scenario(22, "namespace autoTopicCreation = partitioned,3: what lookup, metadata, produce and subscribe do")
def auto_create_partitioned(s: Recorder) -> None:
    s.policy(
        "POST",
        "/autoTopicCreation",
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    )
    s.sleep(0.3)
    c = s.conn("A")
    c.req("PARTITIONED_METADATA", topic=s.topic("a"), metadata_auto_creation_enabled=False)
    c.req("PARTITIONED_METADATA", topic=s.topic("a"))
    s.rest("GET", f"/admin/v2/persistent/{s.ns}/partitioned")
    c.prod(s.topic("a"), 0)
    c.prod(s.topic("a-partition-0"), 1)
    c.prod(s.topic("b"), 2)
    c.sub(s.topic("c"))
    c.prod(s.topic("d-partition-0"), 3)
    s.rest("GET", f"/admin/v2/persistent/{s.ns}/partitioned")
    s.topics()


@scenario(
    23,
    "namespace autoTopicCreation off: lookup, metadata, produce, subscribe (force_topic_creation true/false), "
    "get_last_id, get_schema",
)
def auto_create_off(s: Recorder) -> None:
    s.policy("POST", "/autoTopicCreation", {"allowAutoTopicCreation": False})
    s.sleep(0.3)
    c = s.conn("A")
    t = s.topic("a")
    c.req("LOOKUP", topic=t)
    c.req("PARTITIONED_METADATA", topic=t)
    c.req("PARTITIONED_METADATA", topic=t, metadata_auto_creation_enabled=True)
    c.prod(t)
    c.sub(t)
    c.sub(t, force_topic_creation=False, cid=1)
    c.req("GET_SCHEMA", topic=t)
    n = s.topic("a", "non-persistent")
    c.req("PARTITIONED_METADATA", topic=n)
    c.prod(n, 1)
    c.sub(n, cid=2)
    s.say("the same ids again, after the topic exists")
    s.admin("PUT", "", topic=t)
    c.prod(t)
    c.sub(t)


@scenario(24, "namespace autoSubscriptionCreation off: durable, non-durable, initial_subscription_name, non-persistent")
def auto_subscription_off(s: Recorder) -> None:
    s.policy("POST", "/autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    s.sleep(0.3)
    c = s.conn("A")
    c.sub(s.topic())
    c.sub(s.topic(), durable=False, cid=1)
    c.prod(s.topic(), initial_subscription_name="init")
    c.sub(s.topic("n", "non-persistent"), cid=2)
    s.admin("PUT", "/subscription/s", {})
    c.sub(s.topic(), cid=3)


@scenario(
    97,
    "GET_TOPICS_OF_NAMESPACE: modes, pattern, bad pattern, long pattern, hash equal / different, partitions, system "
    "topics",
)
def topics_of_namespace(s: Recorder) -> None:
    for x in ("a", "b", "zz"):
        s.admin("PUT", "", topic=s.topic(x))
    s.admin("PUT", "/partitions", 2, topic=s.topic("p"))
    c = s.conn("A")
    c.prod(s.topic("np", "non-persistent"), 0)

    def listed(**k: Any) -> Any:
        return c.req("GET_TOPICS_OF_NAMESPACE", namespace=s.ns, **k)

    f = listed()
    listed(mode="PERSISTENT")
    listed(mode="NON_PERSISTENT")
    listed(mode="ALL")
    ns = f"persistent://{s.ns}/"
    s.say("patterns")
    for p in (
        ns + "t[ab]",
        ns + ".*",
        ".*",
        "t[ab]",
        f"{s.ns}/t[ab]",
        ns + "tp",
        ns + "tp-partition-0",
        ns + "t.*" + "x?" * 20,
        ns + "[",
        "non-persistent://" + s.ns + "/.*",
    ):
        listed(topics_pattern=p, mode="ALL")
    s.say("hash equal")
    listed(topics_hash=f.topics_hash)
    s.say("hash different")
    listed(topics_hash="deadbeef")
    s.say("pattern and equal hash")
    g = listed(topics_pattern=ns + "t[ab]")
    listed(topics_pattern=ns + "t[ab]", topics_hash=g.topics_hash)
    s.say("empty namespace name / no such")
    c.req("GET_TOPICS_OF_NAMESPACE", namespace="", t=1)
    if not c.open:
        c = s.conn("A2")
    c.req("GET_TOPICS_OF_NAMESPACE", namespace="public", t=1)


@scenario(
    98,
    "WATCH_TOPIC_LIST: success, updates on create/delete (plain, partitioned, non-matching, non-persistent), same "
    "hash on reconnect, duplicate watcher id, close, close unknown, client without the flag",
)
def watch_topic_list(s: Recorder) -> None:
    ns = f"persistent://{s.ns}/"
    s.admin("PUT", "", topic=s.topic("a"))
    c = s.conn("A", flags={"supports_topic_watchers": True})

    def watch(cn: Any, w: Any, p: Any, **k: Any) -> Any:
        return cn.req("WATCH_TOPIC_LIST", watcher_id=w, namespace=s.ns, topics_pattern=p, **k)

    f = watch(c, 1, ns + "t.*")
    s.say("create tb")
    s.admin("PUT", "", topic=s.topic("b"))
    s.settle(600)
    s.say("create xx (no match)")
    s.admin("PUT", "", topic=f"{ns}xx")
    s.settle(400)
    s.say("partitioned tp x2")
    s.admin("PUT", "/partitions", 2, topic=s.topic("p"))
    s.settle(600)
    s.say("auto-created by a producer: tauto")
    c.prod(s.topic("auto"), 0)
    s.settle(500)
    s.say("non-persistent")
    c.prod(s.topic("np", "non-persistent"), 1)
    s.settle(400)
    s.say("delete tb, then create it again")
    s.admin("DELETE", "", topic=s.topic("b"))
    s.settle(500)
    s.admin("PUT", "", topic=s.topic("b"))
    s.settle(500)
    s.say("delete the partitioned one")
    s.admin("DELETE", "/partitions?force=true", topic=s.topic("p"))
    s.settle(600)
    s.say("same watcher id again")
    watch(c, 1, ns + "t.*")
    s.say("another watcher with an old hash, then with the current")
    g = watch(c, 2, ns + "t.*", topics_hash=f.topics_hash if f is not None else "")
    watch(c, 3, ns + "t.*", topics_hash=g.topics_hash if g is not None else "")
    s.say("bad pattern, long pattern")
    watch(c, 4, "[")
    watch(c, 5, ns + "t" + "x" * 60)
    s.say("missing namespace")
    c.req("WATCH_TOPIC_LIST", watcher_id=6, namespace="tr/nonesuch", topics_pattern=".*")
    s.say("close")
    c.req("WATCH_TOPIC_LIST_CLOSE", watcher_id=1)
    c.req("WATCH_TOPIC_LIST_CLOSE", watcher_id=77)
    s.admin("PUT", "", topic=s.topic("after-close"))
    s.settle(500)
    d = s.conn("B", flags={})
    s.say("client that did not announce the flag")
    watch(d, 1, ns + "t.*")
