"""Acts of the console, against a broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker
from pulsarium.capture.pcap.blocks import PacketReader
from pulsarium.client import connect
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from scripts.pages.console_acts import ACTS
from tests.broker.wire import frame_of
from tests.browser.chromium import Page
from tests.browser.stage import asked, client_of, exists, publish

pytestmark = pytest.mark.heavy


class Stage:
    """The object of an act. `name` is the topic, the namespace without its tenant, or the tenant."""

    def __init__(self, broker: PulsarBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.topic = f"public/default/{name}"
        self.noted = 0  # a number before the act

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        return asked(self.broker, path, method, body)

    def of_topic(self, path: str = "", method: str = "GET", body: Any = None) -> Any:
        return self.ask(f"admin/v2/persistent/{self.topic}{path}", method, body)

    @property
    def backlog(self) -> int:
        found: int = self.of_topic("/stats")["subscriptions"]["sub"]["msgBacklog"]
        return found

    @property
    def topics(self) -> list[str]:
        found: list[str] = self.ask("admin/v2/namespaces/public/default/topics?mode=ALL")
        return found


Do = Callable[[Stage], Any]


def nothing(stage: Stage) -> None:
    return None


def five(stage: Stage) -> None:
    publish(stage.broker, stage.topic, 5)


def skipped(stage: Stage) -> None:
    five(stage)
    stage.of_topic("/subscription/sub/skip_all", "POST")


def old(stage: Stage) -> None:
    five(stage)
    stage.broker.clock.advance(100)


def partitioned(stage: Stage) -> None:
    stage.broker.create_topic(stage.topic, partitions=2)


def one_missing(stage: Stage) -> None:
    partitioned(stage)
    stage.of_topic("-partition-1", "DELETE")
    assert f"persistent://{stage.topic}-partition-1" not in stage.topics


def loaded_partitions(stage: Stage) -> None:
    partitioned(stage)
    with client_of(stage.broker) as client:
        client.create_producer(stage.topic)
    assert partitions_loaded(stage) == [True, True]


def partitions_loaded(stage: Stage) -> list[bool]:
    return [each["loaded"] for each in stage.ask(f"pulsarium/topic/persistent/{stage.topic}")["partitions"]]


def without_retention(stage: Stage) -> None:
    """Leave a ledger without a reason to keep it."""
    five(stage)
    stage.of_topic("/retention", "POST", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    stage.of_topic("/unload", "PUT")
    stage.of_topic("/subscription/sub/skip_all", "POST")
    stage.of_topic("/retention", "DELETE")
    stage.noted = ledgers(stage)
    assert stage.noted > 1


def ledgers(stage: Stage) -> int:
    return len(stage.of_topic("/internalStats")["ledgers"])


def scalable(stage: Stage) -> None:
    stage.ask(f"admin/v2/scalable/{stage.topic}?numInitialSegments=2", "PUT", {})


def namespace(stage: Stage) -> None:
    stage.broker.create_namespace(stage.name)


def five_in_namespace(stage: Stage) -> None:
    namespace(stage)
    stage.topic = f"public/{stage.name}/t"
    five(stage)
    assert is_loaded(stage)
    assert stage.backlog == 5


def tenant(stage: Stage) -> None:
    stage.ask(f"admin/v2/tenants/{stage.name}", "PUT", {"adminRoles": [], "allowedClusters": ["standalone"]})


def segments(stage: Stage) -> int:
    return len(stage.ask(f"pulsarium/topic/topic/{stage.topic}")["segments"])


def active(stage: Stage) -> int:
    return sum(each["active"] for each in stage.ask(f"pulsarium/topic/topic/{stage.topic}")["segments"])


def is_loaded(stage: Stage) -> bool:
    found: bool = stage.ask(f"pulsarium/topic/persistent/{stage.topic}")["loaded"]
    return found


def with_schema(stage: Stage) -> None:
    five(stage)


def open_transaction(stage: Stage) -> None:
    async def begin() -> None:
        async with connect(stage.broker.service_url) as client:
            await client.begin_transaction(timeout=3600)

    anyio.run(begin)


def has_fault(stage: Stage) -> None:
    stage.ask("lab/faults", "POST", {"command": "PING", "action": {"kind": "drop"}})


def has_mask(stage: Stage) -> None:
    stage.ask("lab/masks", "POST", {"maxProtocolVersion": 19})


def has_capture(stage: Stage) -> None:
    stage.ask("lab/captures", "POST", {})


def lints(stage: Stage) -> None:
    stage.ask("lab/violations/start", "POST")


def found(stage: Stage) -> None:
    """Have a client that sends PONG without a PING, which breaks a rule."""
    lints(stage)
    with socket.create_connection(("127.0.0.1", urlsplit(stage.broker.service_url).port)) as client:
        connect = frame_of(pb.BaseCommand.CONNECT, client_version="wire", protocol_version=19)
        client.sendall(connect + frame_of(pb.BaseCommand.PONG))
        while not stage.ask("lab/violations")["violations"]:
            assert client.recv(1)


def frozen(stage: Stage) -> None:
    stage.ask("lab/clock/freeze", "POST")
    stage.noted = stage.ask("lab/clock")["nowMs"]


def with_timer(stage: Stage) -> None:
    open_transaction(stage)
    frozen(stage)


@dataclass(frozen=True)
class Case:
    """A test of an act: its preparation, the values that a person enters, and the check of the result."""

    after: Do
    before: Do = nothing
    fields: Mapping[str, str] = field(default_factory=dict)


FIRST = "the first message's id"


def first_of(stage: Stage) -> str:
    found: str = stage.ask(f"pulsarium/messages/persistent/{stage.topic}?start=earliest")["messages"][0]["id"]
    return found


CASES = {
    "skip": Case(lambda s: s.backlog == 3, five, {"Messages": "2"}),
    "skip-message": Case(lambda s: s.backlog == 4, five, {"Message: by": "index", "Message: value": "1"}),
    "seek": Case(lambda s: s.backlog == 5, skipped, {"Message: by": "time", "Message: value": "0"}),
    "rewind": Case(lambda s: s.backlog == 5, skipped),
    "clear": Case(lambda s: s.backlog == 0, five),
    "expire": Case(lambda s: s.backlog == 0, old, {"Seconds": "50"}),
    "expire-to": Case(lambda s: s.backlog == 4, five, {"Message: by": "id", "Message: value": FIRST}),
    "unsubscribe": Case(lambda s: s.of_topic("/subscriptions") == [], five),
    "unsubscribe-force": Case(lambda s: s.of_topic("/subscriptions") == [], five),
    "subscribe": Case(lambda s: "new/one" in s.of_topic("/subscriptions"), five, {"Name": "new/one"}),
    "unload": Case(lambda s: not is_loaded(s), five),
    "compact": Case(lambda s: s.of_topic("/compaction")["status"] in ("RUNNING", "SUCCESS"), five),
    "expire-all": Case(lambda s: s.backlog == 0, old, {"Seconds": "50"}),
    "trim": Case(lambda s: ledgers(s) < s.noted, without_retention),
    "truncate": Case(lambda s: s.backlog == 0, five),
    "terminate": Case(lambda s: s.of_topic("/internalStats")["state"] == "Terminated", five),
    "delete": Case(lambda s: f"persistent://{s.topic}" not in s.topics, lambda s: s.broker.create_topic(s.topic)),
    "delete-force": Case(lambda s: f"persistent://{s.topic}" not in s.topics, five),
    "delete-schema": Case(lambda s: not exists(s.broker, f"admin/v2/schemas/{s.topic}/schema"), with_schema),
    "partitions": Case(lambda s: s.of_topic("/partitions")["partitions"] == 4, partitioned),
    "missing": Case(lambda s: f"persistent://{s.topic}-partition-1" in s.topics, one_missing),
    "unload-all": Case(lambda s: partitions_loaded(s) == [False, False], loaded_partitions),
    "subscribe-all": Case(lambda s: s.of_topic("/subscriptions") == ["new"], partitioned, {"Name": "new"}),
    "delete-partitioned": Case(lambda s: not [n for n in s.topics if s.name in n], partitioned),
    "delete-partitioned-force": Case(lambda s: not [n for n in s.topics if s.name in n], partitioned),
    "split": Case(lambda s: segments(s) == 4, scalable, {"Segment": "0"}),
    "merge": Case(lambda s: active(s) == 1, scalable, {"Segment": "0", "Other segment": "1"}),
    "delete-scalable": Case(lambda s: not exists(s.broker, f"admin/v2/scalable/{s.topic}"), scalable),
    "create": Case(lambda s: f"persistent://public/{s.name}/a b" in in_namespace(s), namespace, {"Topic": "a b"}),
    "create-partitioned": Case(lambda s: len(in_namespace(s)) == 4, namespace, {"Topic": "p", "Partitions": "4"}),
    "create-scalable": Case(
        lambda s: exists(s.broker, f"admin/v2/scalable/public/{s.name}/s"), namespace, {"Topic": "s"}
    ),
    "unload-namespace": Case(lambda s: not is_loaded(s), five_in_namespace),
    "clear-namespace": Case(lambda s: s.backlog == 0, five_in_namespace),
    "delete-namespace": Case(lambda s: f"public/{s.name}" not in s.ask("admin/v2/namespaces/public"), namespace),
    "create-namespace": Case(
        lambda s: "public/made-there" in s.ask("admin/v2/namespaces/public"),
        fields={"tenant/namespace": "public/made-there"},
    ),
    "create-tenant": Case(lambda s: "made-here" in s.ask("admin/v2/tenants"), fields={"Tenant": "made-here"}),
    "delete-tenant": Case(lambda s: s.name not in s.ask("admin/v2/tenants"), tenant),
    "abort": Case(lambda s: s.ask("admin/v3/transactions/slowTransactions/0") == {}, open_transaction),
    "freeze": Case(lambda s: s.ask("lab/clock")["frozen"]),
    "resume": Case(lambda s: not s.ask("lab/clock")["frozen"], frozen),
    "reset-clock": Case(lambda s: abs(s.ask("lab/clock")["offsetMs"]) < 1000, lambda s: s.broker.clock.advance(50)),
    "advance": Case(lambda s: s.ask("lab/clock")["offsetMs"] >= 3_600_000, fields={"Seconds": "3600"}),
    "run-next": Case(lambda s: s.ask("lab/clock")["nowMs"] > s.noted, with_timer),
    "fault": Case(lambda s: fault_of(s)["topic"] == "none*", fields={"Command": "ACK", "Topic (glob)": "none*"}),
    "remove-fault": Case(lambda s: s.ask("lab/faults") == [], has_fault),
    "remove-faults": Case(lambda s: s.ask("lab/faults") == [], has_fault),
    "mask": Case(lambda s: len(s.ask("lab/masks")) == 1),
    "remove-mask": Case(lambda s: s.ask("lab/masks") == [], has_mask),
    "capture": Case(lambda s: s.ask("lab/captures")[-1]["running"]),
    "stop-capture": Case(lambda s: not s.ask("lab/captures")[-1]["running"], has_capture),
    "lint": Case(lambda s: s.ask("lab/violations")["running"]),
    "lint-stop": Case(lambda s: not s.ask("lab/violations")["running"], lints),
    "lint-clear": Case(lambda s: s.ask("lab/violations")["violations"] == [], found),
    "reset-state": Case(lambda s: s.topics == [], five),
}


def in_namespace(stage: Stage) -> list[str]:
    found: list[str] = stage.ask(f"admin/v2/namespaces/public/{stage.name}/topics")
    return found


def fault_of(stage: Stage) -> dict[str, Any]:
    (found,) = stage.ask("lab/faults")
    rule: dict[str, Any] = found
    return rule


def address(on: str, stage: Stage) -> str:
    """Return the page that has the act."""
    if on == "subscription":
        return f"#/topic/persistent/public/default/{stage.name}"
    if on in ("topic", "partitioned"):
        return f"#/topic/persistent/public/default/{stage.name}/acts"
    if on == "scalable":
        return f"#/topic/topic/public/default/{stage.name}/acts"
    if on == "namespace":
        return f"#/namespace/public/{stage.name}?tab=acts"
    return {"tenant": "#/namespaces", "broker": "#/namespaces", "transaction": "#/transactions"}.get(on, "#/lab")


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """Return settings with which messages have an index."""
    package = "org.apache.pulsar.common.intercept"
    names = ("AppendBrokerTimestampMetadataInterceptor", "AppendIndexMetadataInterceptor")
    return {"brokerEntryMetadataInterceptors": ",".join(f"{package}.{name}" for name in names)}


@pytest.fixture
def clean(broker: PulsarBroker) -> Iterator[None]:
    yield
    for part in ("faults", "masks", "captures"):
        asked(broker, f"lab/{part}", "DELETE")
    asked(broker, "lab/violations/stop", "POST")
    asked(broker, "lab/clock/reset", "POST")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.id)
def test_an_act_does_what_it_says(act: Any, page: Page, broker: PulsarBroker, clean: None) -> None:
    case = CASES[act.id]
    stage = Stage(broker, f"of-{act.id}")
    case.before(stage)
    page.go(f"{broker.admin_url}/{address(act.on, stage)}")
    page.until("document.querySelector('main h2')")
    if act.on in ("tenant", "broker"):
        page.until("document.querySelector('[data-tenant=public]')")  # it moves the buttons too
    if act.on == "subscription":
        page.until("document.querySelector('[data-subscription=sub] details.more')")
        page.do("document.querySelector('[data-subscription=sub] details.more').open = true")
    within = f"[data-tenant={stage.name}] " if act.id == "delete-tenant" else "main "
    within = "[data-tenant=public] " if act.id == "create-namespace" else within
    page.press(f"{within}[data-act={act.id}]")
    for name, text in case.fields.items():
        page.fill(name, first_of(stage) if text == FIRST else text, within="dialog[open]")
    page.until("!document.querySelector('dialog[open] .copied pre').innerText.includes('{')")
    assert page.text("dialog[open] .copied pre").startswith("pulsarium ")
    page.click(act.label, within="dialog[open]")
    page.sees("Done: ")
    assert case.after(stage), page.text(".toasts")


def test_every_act_has_a_case() -> None:
    assert CASES.keys() == {act.id for act in ACTS}


def test_a_refusal_says_what_to_do(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        client.create_producer("busy")
        page.go(f"{broker.admin_url}/#/topic/persistent/public/default/busy/acts")
        page.press("[data-act=delete]")
        page.click("Delete topic", within="dialog[open]")
        page.sees("412: ")
        page.click("Delete with clients…", within="dialog[open]")
        page.click("Delete with clients", within="dialog[open]")
        page.sees("Done: Delete with clients")


def test_a_message_is_published_with_key_properties_and_delay(page: Page, broker: PulsarBroker) -> None:
    broker.create_topic("public/default/made")
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/made")
    page.click("Publish a message")
    page.fill("Payload", '{"a": 1}')
    page.fill("Key", "<k>")
    page.fill("Deliver after", "3600")
    page.click("Properties", within="dialog[open]")
    page.fill("Properties", "color=green=blue")
    page.click("Publish", within="dialog[open]")
    page.sees("Done: published as")
    (message,) = asked(broker, "pulsarium/messages/persistent/public/default/made?start=earliest")["messages"]
    assert (message["value"], message["key"], message["properties"]) == ('{"a": 1}', "<k>", [["color", "green=blue"]])
    assert message["deliverAtMs"] - message["publishMs"] == pytest.approx(3_600_000, abs=10_000)


def with_record(broker: PulsarBroker, name: str) -> None:
    fields = [{"name": "who", "type": "string"}, {"name": "total", "type": ["null", "long"], "default": None}]
    record = json.dumps({"type": "record", "name": "Order", "fields": fields})
    broker.create_topic(f"public/default/{name}")
    schema = {"type": "AVRO", "schema": record, "properties": {}}
    asked(broker, f"admin/v2/schemas/public/default/{name}/schema", "POST", schema)


def test_a_message_is_made_with_a_form_from_the_schema_of_the_topic(page: Page, broker: PulsarBroker) -> None:
    with_record(broker, "formed")
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/formed")
    page.click("Publish a message")
    page.fill("who", "Ada", within="dialog[open]")
    page.fill("Kind of total", "1", within="dialog[open]")
    page.fill("total long", "1500", within="dialog[open]")
    page.click("Publish", within="dialog[open]")
    page.sees("Done: published as")
    (message,) = asked(broker, "pulsarium/messages/persistent/public/default/formed?start=earliest")["messages"]
    assert (message["kind"], message["value"]) == ("AVRO", {"who": "Ada", "total": 1500})


def test_a_value_that_does_not_fit_the_schema_is_refused_with_its_place(page: Page, broker: PulsarBroker) -> None:
    with_record(broker, "unfit")
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/unfit")
    page.click("Publish a message")
    page.click("JSON", within="dialog[open]")
    page.fill("Value, in JSON", '{"who": 12, "total": null}')
    page.click("Publish", within="dialog[open]")
    page.until("document.querySelector('dialog[open] [role=alert]')?.innerText.startsWith('who')")
    assert asked(broker, "pulsarium/messages/persistent/public/default/unfit?start=earliest")["messages"] == []


def test_a_policy_is_set_with_a_form_and_removed(page: Page, broker: PulsarBroker) -> None:
    broker.create_topic("public/default/ruled")
    path = "admin/v2/persistent/public/default/ruled/retention"
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/ruled/policies")
    page.click("Edit retention")
    command = "pulsarium admin topicPolicies set-retention persistent://public/default/ruled"
    page.sees(f"{command} --time DURATION --size SIZE")
    page.fill("retentionTimeInMinutes, in minutes", "5", within="dialog[open]")
    page.fill("retentionSizeInMB, in MB", "6", within="dialog[open]")
    page.click("Set", within="dialog[open]")
    page.until("![...document.querySelectorAll('dialog[open]')].length")
    page.sees("retentionTimeInMinutes: 5, retentionSizeInMB: 6")
    assert asked(broker, path) == {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6}
    page.click("Edit retention")
    page.click("Remove, so that", within="dialog[open]")
    page.until("![...document.querySelectorAll('dialog[open]')].length")
    assert asked(broker, path) is None


def test_a_policy_is_set_as_json(page: Page, broker: PulsarBroker) -> None:
    broker.create_topic("public/default/written")
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/written/policies")
    page.click("Edit publishRate")
    page.click("JSON", within="dialog[open]")
    page.fill("Value of the topic", '{"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": -1}')
    page.click("Set", within="dialog[open]")
    page.sees("publishThrottlingRateInMsg: 7")
    assert asked(broker, "admin/v2/persistent/public/default/written/publishRate")["publishThrottlingRateInMsg"] == 7


def test_messages_are_browsed_and_followed_live(page: Page, broker: PulsarBroker) -> None:
    publish(broker, "public/default/read", 3)
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/read/messages?subscription=sub")
    page.sees("message 2")
    page.click("message ")
    page.click("What happened to it on sub?")
    page.sees("no consumer is connected")
    page.click("Follow live")
    page.sees("Waiting for new messages")
    with client_of(broker) as client:
        client.create_producer("read").send(b"brand new", properties={"a": "b"})
    page.sees("brand new")
    assert "message 2" not in page.text("main")


def test_the_frames_of_a_capture_come_live(page: Page, broker: PulsarBroker, clean: None) -> None:
    asked(broker, "lab/captures", "POST", {})
    page.go(f"{broker.admin_url}/#/lab")
    page.click("Show frames")
    with client_of(broker) as client:
        client.create_producer("captured").send(b"x")
    page.sees("SEND_RECEIPT")


def test_a_capture_is_downloaded_for_programs_and_for_wireshark(
    page: Page, broker: PulsarBroker, clean: None, tmp_path: Path
) -> None:
    asked(broker, "lab/captures", "POST", {})
    with client_of(broker) as client:
        client.create_producer("kept").send(b"what was sent")
    page.go(f"{broker.admin_url}/#/lab")
    for folder in (tmp_path / "lines", tmp_path / "packets"):
        folder.mkdir()
    lines = page.download("Download JSON lines", tmp_path / "lines").read_text().splitlines()
    assert any(json.loads(line).get("entry", {}).get("payload") == "what was sent" for line in lines)
    packets = PacketReader().feed(page.download("Download pcapng", tmp_path / "packets").read_bytes())
    assert any(b"what was sent" in packet.data for packet in packets)


def test_a_fault_counts_its_hits_live(page: Page, broker: PulsarBroker, clean: None) -> None:
    fault = {"command": "LOOKUP", "action": {"kind": "delay", "seconds": 0.01}, "count": 3}
    asked(broker, "lab/faults", "POST", fault)
    page.go(f"{broker.admin_url}/#/lab")
    page.sees("LOOKUP")
    with client_of(broker) as client:
        client.create_producer("faulted")
    hits = "[...document.querySelectorAll('table[aria-label=Faults] td.n')].some((e) => e.innerText !== '0')"
    page.until(hits)


def test_a_seed_is_applied(page: Page, broker: PulsarBroker, tmp_path: Path) -> None:
    seed = tmp_path / "seed.toml"
    seed.write_text('[[topics]]\nname = "persistent://public/default/seeded"\n')
    page.go(f"{broker.admin_url}/#/lab")
    page.choose("[data-act=seed]", seed)
    page.sees("Done: ")
    assert exists(broker, "admin/v2/persistent/public/default/seeded/stats")


def test_a_snapshot_is_saved_and_restored(page: Page, broker: PulsarBroker, tmp_path: Path) -> None:
    publish(broker, "public/default/saved", 3)
    page.go(f"{broker.admin_url}/#/lab")
    snapshot = page.download("Save a snapshot", tmp_path)
    page.sees("the snapshot is in your downloads")
    asked(broker, "admin/v2/persistent/public/default/saved?force=true", "DELETE")
    page.choose("[data-act=restore]", snapshot)
    page.until("!document.body.innerText.includes('in your downloads')")
    page.sees("Done: ")
    assert asked(broker, "admin/v2/persistent/public/default/saved/stats")["subscriptions"]["sub"]["msgBacklog"] == 3


def test_versions_of_a_schema_are_compared(page: Page, broker: PulsarBroker) -> None:
    broker.create_topic("public/default/evolved")
    fields: list[dict[str, Any]] = [{"name": "kept", "type": "int"}]
    for name in ("old", "new"):
        record = {"type": "record", "name": "R", "fields": [*fields, {"name": name, "type": "int", "default": 0}]}
        schema = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
        asked(broker, "admin/v2/schemas/public/default/evolved/schema", "POST", schema)
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/evolved/schema")
    page.sees("Compared with version 0:")
    assert page.text("pre ins").rstrip() == '+       "name": "new",'
    assert page.text("pre del").rstrip() == '-       "name": "old",'
    page.fill("Version", "0")
    page.until("!document.querySelector('pre ins')")
    assert '"name": "old"' in page.text("main pre")


def test_a_banner_tells_of_a_frozen_clock_on_every_page(page: Page, broker: PulsarBroker, clean: None) -> None:
    broker.clock.freeze()
    publish(broker, "public/default/cold", 1)
    for where in (
        "",
        "#/topics",
        "#/connections",
        "#/topic/persistent/public/default/cold",
        "#/namespaces",
        "#/transactions",
        "#/lab",
    ):
        page.go("about:blank")
        page.go(f"{broker.admin_url}/{where}")
        page.sees("The broker's clock is frozen at")
    page.press(".banner [data-act=reset-clock]")
    page.click("Return to real time", within="dialog[open]")
    page.until("!document.querySelector('.banner')")


def test_a_subscription_with_consumers_is_deleted_by_force(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        client.subscribe("forced", "sub", pulsar.ConsumerType.Shared)
        page.go(f"{broker.admin_url}/#/topic/persistent/public/default/forced")
        page.click("More…")
        page.press("[data-act=unsubscribe]")
        page.click("Delete subscription", within="dialog[open]")
        page.sees("412: ")
        page.click("Cancel", within="dialog[open]")
        page.press("[data-act=unsubscribe-force]")
        page.click("Delete with consumers", within="dialog[open]")
        page.sees("Done: ")
