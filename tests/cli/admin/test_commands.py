"""Commands that a recording does not show whole: several requests, questions, the clock.

`pulsarium admin scalable-topics`: what each command asks, and what it prints of a broker with scalable topics.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.cli.admin.live import live

from .conftest import Played

TOPIC = "persistent://public/default/t"
T = "persistent/public/default/t"


def sent(played: Played) -> list[tuple[str, str, object]]:
    found = list(played.sent)
    played.sent.clear()
    return found


def test_commands_whose_requests_pulsar_admin_sends_late_send_the_same(played: Played) -> None:
    """pulsar-admin sends these requests after the command has ended, so they were not recorded with it."""
    pause = "dispatcher-pause-on-ack-state-persistent"
    played.answer("GET", f"{T}/dispatcherPauseOnAckStatePersistent", True)
    assert played.said("topicPolicies", f"get-{pause}", "t", "-a", "-g") == "true\n"
    played.said("topicPolicies", f"set-{pause}", "t", "-g")
    played.said("topicPolicies", f"remove-{pause}", "t")
    played.said("topicPolicies", "set-replication-clusters", "t", "-c", "c1,c2", "-g")
    played.said("topicPolicies", "remove-replication-clusters", "t")
    played.said("brokers", "version")
    route = f"{T}/dispatcherPauseOnAckStatePersistent"
    assert sent(played) == [
        ("GET", f"{route}?isGlobal=true&applied=true", None),
        ("POST", f"{route}?isGlobal=true", None),
        ("DELETE", route, None),
        ("POST", f"{T}/replication?isGlobal=true", ["c1", "c2"]),
        ("DELETE", f"{T}/replication", None),
        ("GET", "brokers/version", None),
    ]


def test_a_tenant_may_use_all_clusters_unless_told(played: Played) -> None:
    played.answer("GET", "clusters", ["a", "b"])
    played.said("tenants", "create", "t")
    assert sent(played)[1] == ("PUT", "tenants/t", {"adminRoles": [], "allowedClusters": ["a", "b"]})


def test_a_tenant_keeps_what_is_not_changed(played: Played) -> None:
    played.answer("GET", "tenants/t", {"adminRoles": ["r"], "allowedClusters": ["c"]})
    played.said("tenants", "update", "t", "-r", "x")
    assert sent(played)[1] == ("POST", "tenants/t", {"adminRoles": ["x"], "allowedClusters": ["c"]})


def test_the_cluster_of_the_broker_is_marked(played: Played) -> None:
    played.answer("GET", "clusters", ["a", "b"])
    played.answer("GET", "brokers/configuration/runtime", {"clusterName": "b"})
    assert played.said("clusters", "list") == "a\nb\n"
    assert played.said("clusters", "list", "--current") == "a\nb(*)\n"


def test_clearing_a_namespace_asks_before(played: Played) -> None:
    from click.testing import CliRunner

    from pulsarium.cli.main import cli

    line = ["admin", "namespaces", "clear-backlog", "a/b"]
    assert CliRunner().invoke(cli, line, input="n\n").exit_code == 1
    assert sent(played) == []
    assert CliRunner().invoke(cli, line, input="y\n").exit_code == 0
    played.said("namespaces", "clear-backlog", "a/b", "-force")
    assert sent(played) == [("POST", "namespaces/a/b/clearBacklog", None)] * 2


def test_topics_are_deleted_one_by_one_and_what_is_refused_is_said(played: Played, tmp_path: Path) -> None:
    (tmp_path / "names").write_text(f"t\n\n{TOPIC}2\n")
    played.refuse("DELETE", T, 412, "Topic has active producers/subscriptions")
    said = played.said("topics", "delete", str(tmp_path / "names"), "--from-file", "-f")
    assert said == f"Failed to delete topic: {TOPIC}. Exception: Topic has active producers/subscriptions\n"
    assert [target for _, target, _ in sent(played)] == [
        f"{T}?force=true&deleteSchema=true",
        f"{T}2?force=true&deleteSchema=true",
    ]
    assert "cannot be read" in played.refused("topics", "delete", str(tmp_path / "none"), "--from-file")


def test_a_topic_that_is_not_deleted_fails_the_command_only_where_it_is_told_to(played: Played) -> None:
    played.refuse("DELETE", T, 412, "Topic has active producers/subscriptions")
    refusal = f"Failed to delete topic: {TOPIC}. Exception: Topic has active producers/subscriptions\n"
    assert played.said("topics", "delete", "t") == refusal
    assert played.refused("topics", "delete", "t", "--fail") == f"pulsarium: {refusal}"
    assert played.said("topics", "delete", f"{TOPIC}2", "--fail") == ""


def test_topics_are_deleted_by_pattern(played: Played) -> None:
    played.answer("GET", "persistent/public/default", [f"{TOPIC}-1", f"{TOPIC}-2", "persistent://public/default/x"])
    played.answer("GET", "non-persistent/public/default", [])
    played.said("topics", "delete", f"{TOPIC}-.*", "--regex")
    assert [target.partition("?")[0] for method, target, _ in sent(played) if method == "DELETE"] == [
        f"{T}-1",
        f"{T}-2",
    ]


def test_a_cursor_is_reset_to_so_long_ago(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.25)
    played.said("topics", "reset-cursor", "t", "-s", "s", "--time", "10m")
    assert sent(played) == [("POST", f"{T}/subscription/s/resetcursor/400250", None)]


@pytest.mark.parametrize("command", ["compaction-status", "offload-status"])
def test_waiting_until_it_is_over(command: str, played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    route = f"{T}/{command.removesuffix('-status')}"
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    for status in ("RUNNING", "RUNNING", "SUCCESS"):
        played.answer("GET", route, {"status": status, "lastError": ""})
    assert "was a success" in played.said("topics", command, "t", "--wait-complete")
    assert naps == [1, 1]


def test_a_run_that_failed(played: Played) -> None:
    played.answer("GET", f"{T}/compaction", {"status": "ERROR", "lastError": "boom"})
    result = played.run("topics", "compaction-status", "t")
    assert (result.exit_code, result.stdout) == (1, "Error in compaction\n")
    assert result.stderr == "pulsarium: Error compacting: boom\n"


def test_peeking_ends_with_the_backlog(played: Played) -> None:
    route = f"{T}/subscription/s/position"
    headers = {"x-pulsar-message-id": "3:0", "x-pulsar-publish-time": "2026-11-21T13:14:57.69Z"}
    played.answer("GET", f"{route}/1", b"x", headers=headers)
    played.refuse("GET", f"{route}/2", 404, "Message not found at position 2")
    said = played.said("topics", "peek-messages", "t", "-s", "s", "-n", "9")
    assert said.startswith("Message ID: 3:0\nPublish time: 1795266897690\nEvent time: 0\n")
    assert len(sent(played)) == 2


def test_peeking_at_nothing_and_at_what_is_not_there(played: Played) -> None:
    route = f"{T}/subscription/s/position/1"
    played.refuse("GET", route, 404, "Message not found at position 1")
    assert played.said("topics", "peek-messages", "t", "-s", "s") == ""
    assert json.loads(played.said("--output", "json", "topics", "peek-messages", "t", "-s", "s")) == []
    played.answers.clear()
    played.refuse("GET", route, 404, "Topic not found")
    assert "Topic not found" in played.refused("topics", "peek-messages", "t", "-s", "s")


@pytest.mark.parametrize(
    ("headers", "options", "shown"),
    [
        ({"x-pulsar-marker-type": "10"}, [], False),
        ({"x-pulsar-marker-type": "10"}, ["--show-server-marker"], True),
        ({"x-pulsar-txn-uncommitted": "true"}, [], False),
        ({"x-pulsar-txn-aborted": "true"}, [], False),
        ({"x-pulsar-txn-aborted": "true"}, ["-til", "READ_UNCOMMITTED"], True),
        ({"x-pulsar-txn-uncommitted": "false"}, [], True),
    ],
)
def test_peek_messages_hides_markers_and_uncommitted_messages_unless_asked(
    headers: dict[str, str], options: list[str], shown: bool, played: Played
) -> None:
    basics = {"x-pulsar-message-id": "3:0", "x-pulsar-publish-time": "2026-11-21T13:14:57.69Z"}
    played.answer("GET", f"{T}/subscription/s/position/1", b"x", headers=basics | headers)
    assert bool(played.said("topics", "peek-messages", "t", "-s", "s", *options)) == shown


def test_a_schema_from_a_file(played: Played, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "JSON", "schema": "{}", "properties": {"a": "b"}, "name": "ours"}')
    played.said("schemas", "upload", "t", "-f", str(file))
    assert sent(played) == [
        ("POST", "schemas/public/default/t/schema", {"type": "JSON", "schema": "{}", "properties": {"a": "b"}})
    ]
    file.write_text("{")
    assert "is not JSON" in played.refused("schemas", "upload", "t", "-f", str(file))
    assert "cannot be read" in played.refused("schemas", "compatibility", "t", "-f", str(tmp_path / "none"))


def test_a_schema_can_be_uploaded_from_the_output_of_get(played: Played, tmp_path: Path) -> None:
    definition = '{"type":"record","name":"Order","fields":[]}'
    answer = {"version": 0, "type": "AVRO", "timestamp": 5, "data": definition, "properties": {"a": "b"}}
    played.answer("GET", "schemas/public/default/t/schema", json.dumps(answer).encode())
    file = tmp_path / "schema.json"
    file.write_text(played.said("schemas", "get", "t"))
    played.said("schemas", "upload", "u", "-f", str(file))
    assert sent(played)[-1] == (
        ("POST", "schemas/public/default/u/schema", {"type": "AVRO", "schema": definition, "properties": {"a": "b"}})
    )


def test_a_cluster_from_a_file(played: Played, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(
        '{"serviceUrl": "http://file", "brokerServiceUrl": "pulsar://file", "tlsAllowInsecureConnection": true}'
    )
    played.said("clusters", "create", "c", "--cluster-config-file", str(file), "--url", "http://option")
    ((method, target, body),) = sent(played)
    assert (method, target) == ("PUT", "clusters/c")
    assert isinstance(body, dict)
    assert body["serviceUrl"] == "http://option"
    assert body["brokerServiceUrl"] == "pulsar://file"
    assert body["tlsAllowInsecureConnection"] is True
    file.write_text("[]")
    assert "holds no JSON object" in played.refused("clusters", "create", "c", "--cluster-config-file", str(file))


def test_a_command_that_needs_a_jvm_is_refused(played: Played) -> None:
    said = played.refused("schemas", "extract", "t", "--jar", "x", "--type", "json", "--classname", "y")
    assert "schemas upload" in said


def test_groups_of_old(played: Played) -> None:
    assert "Need to provide a persistent topic name" in played.refused("persistent", "stats", "non-persistent://a/b/c")
    assert "Need to provide a non-persistent topic name" in played.refused(
        "non-persistent", "stats", "persistent://a/b/c"
    )
    played.answer("GET", "/admin/namespaces/c/t", ["t/n"])
    assert played.said("namespaces", "list-cluster", "c/t") == "t/n\n"
    assert "cluster/tenant" in played.refused("namespaces", "list-cluster", "c")


def test_namespaces_of_an_anti_affinity_group(played: Played) -> None:
    played.answer("GET", "namespaces/c/antiAffinity/g", ["t/n"])
    assert played.said("namespaces", "get-anti-affinity-namespaces", "-c", "c", "-g", "g", "-p", "t") == "t/n\n"
    assert sent(played)[0][1] == "namespaces/c/antiAffinity/g?tenant=t"


def test_only_the_newer_groups_take_actions_with_commas(played: Played) -> None:
    actions = ["--actions", "produce", "--actions", "consume"]
    played.said("persistent", "grant-permission", "t", "--role", "r", *actions)
    played.said("topics", "grant-permission", "t", "--role", "r", "--actions", "produce,consume")
    played.said("namespaces", "grant-permission", "public/default", "--role", "r", "--actions", "produce,consume")
    assert [body for _, _, body in sent(played)] == [["produce", "consume"]] * 3
    refused = played.run("persistent", "grant-permission", "t", "--role", "r", "--actions", "produce,consume")
    assert (refused.exit_code, "Illegal auth action 'produce,consume'" in refused.stderr) == (1, True)
    assert sent(played) == []


SCALABLE = "topic://public/default/t"


async def test_a_topic_is_created_split_merged_and_deleted() -> None:
    async with live() as admin:
        group = "scalable-topics"
        assert await admin.said(group, "create", SCALABLE, "-s", "2", "-p", "k=v") == (
            f"Created scalable topic {SCALABLE} with 2 segment(s)\n"
        )
        assert await admin.said(group, "list", "public/default") == f"{SCALABLE}\n"
        assert await admin.said(group, "list", "public/default", "-pk", "k", "-pv", "w") == ""
        assert await admin.said(group, "split-segment", SCALABLE, "-s", "0") == f"Split segment 0 of topic {SCALABLE}\n"
        merged = await admin.said(group, "merge-segments", SCALABLE, "--segment-id-1", "2", "--segment-id-2", "3")
        assert merged == f"Merged segments 2 and 3 of topic {SCALABLE}\n"
        shown = json.loads(await admin.said(group, "get-metadata", SCALABLE))
        assert (shown["epoch"], shown["properties"]) == (2, {"k": "v"})
        assert await admin.said(group, "delete", SCALABLE) == f"Deleted scalable topic {SCALABLE}\n"


PLAIN, SECURE = {"brokerUrl": "pulsar://b:6650"}, {"brokerUrlTls": "pulsar+ssl://b:6651"}


@pytest.mark.parametrize(
    ("scheme", "broker", "url"),
    [
        ("http", PLAIN | SECURE, "pulsar://b:6650"),
        ("https", PLAIN | SECURE, "pulsar+ssl://b:6651"),
        ("http", SECURE, "null"),
        ("https", PLAIN, "null"),
    ],
)
def test_a_lookup_tells_the_url_of_the_security_of_the_admin_url(
    played: Played, scheme: str, broker: dict[str, str], url: str
) -> None:
    played.answer("GET", f"/lookup/v2/topic/{T}", broker)
    played.answer("GET", f"{T}/partitions", {"partitions": 1})
    played.answer("GET", f"/lookup/v2/topic/{T}-partition-0", broker)
    admin = ("--admin-url", f"{scheme}://b", "topics")
    assert played.said(*admin, "lookup", "t") == f"{url}\n"
    assert played.said(*admin, "partitioned-lookup", "t") == f"{TOPIC}-partition-0    {url}\n"
