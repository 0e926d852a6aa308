"""`pulsarium why` where only stats tell: a broker that is not Pulsarium, and files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarium.broker.testing.proxy import proxying
from pulsarium.cli.lab.why_stats import tell
from pulsarium.cli.main import cli
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, plain
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine
from tests.docs.blocks import ROOT, TESTED, blocks
from tests.rest.why.recorded import STUCK, Recording

HOUR_MS = 3_600_000


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["why", *arguments], prog_name="pulsarium", catch_exceptions=False)


# ---- our own broker: both ways give the same reason


async def _nobody(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe()
    await wire.ask(pb.BaseCommand.CLOSE_CONSUMER, consumer_id=0)
    await wire.producer()
    await wire.publish(plain(b"0"))


async def _no_flow(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe(type=pb.CommandSubscribe.Shared)
    await wire.producer()
    await wire.publish(plain(b"0"))


async def _delayed(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe(type=pb.CommandSubscribe.Shared)
    await wire.flow()
    await wire.producer()
    await wire.publish(plain(b"0", deliver_at_time=bed.broker.clock.now_ms() + HOUR_MS))


async def _caught_up(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe()
    await wire.producer()


@pytest.mark.parametrize(
    ("reason", "stage"),
    [
        ("no-consumer", _nobody),
        ("no-permits", _no_flow),
        ("delayed", _delayed),
        ("caught-up", _caught_up),
    ],
)
async def test_stats_and_the_lab_give_the_same_reason(reason: str, stage: Callable[[Bed], Awaitable[None]]) -> None:
    async with live() as here:
        await stage(here.bed)
        why = LabLine(here, "why")
        of_lab = json.loads(await why.said("t", "sub", "--json"))
        of_stats = json.loads(await why.said("t", "sub", "--stats", "--json"))
        assert (of_lab["reason"], of_stats["reason"]) == (reason, reason)


async def test_a_subscription_that_is_not_there_is_refused_with_the_others() -> None:
    async with live() as here:
        await _no_flow(here.bed)
        refused = await LabLine(here, "why").run("t", "other", "--stats")
        assert (refused.exit_code, "has no subscription other; there are: sub" in refused.stderr) == (1, True)


async def test_the_partitions_of_a_topic_are_lines_of_a_table() -> None:
    async with live() as here:
        wire = await here.bed.connect()
        here.bed.broker.topics.create_partitions(TopicName.parse("t"), 2)
        for index in range(2):
            await wire.subscribe(f"persistent://public/default/t-partition-{index}", consumer_id=index)
        await wire.producer("persistent://public/default/t-partition-1")
        await wire.publish(plain(b"0"))
        said = (await LabLine(here, "why").said("t", "sub", "--stats")).splitlines()
        assert said[0].startswith("no-permits: ")
        assert [line.split()[:5] for line in said[-3:]] == [
            ["partition", "subscription", "backlog", "unacked", "reason"],
            ["1", "sub", "1", "0", "no-permits"],
            ["0", "sub", "0", "0", "caught-up"],
        ]


# ---- a broker that is not Pulsarium, played from a recording


def recording(name: str) -> Recording:
    (found,) = (each for each in STUCK if each.name == name)
    return found


@contextmanager
def played(of: Recording) -> Iterator[str]:
    """Yield the URL of a broker that answers with the stats of a recording, and knows no lab."""
    (facts,) = of.facts
    path = facts.topic.replace("://", "/")
    answers: dict[str, Any] = {
        f"/admin/v2/{path}/partitions": {"partitions": 0},
        f"/admin/v2/{path}/stats": facts.stats,
        f"/admin/v2/{path}/internalStats": facts.internal,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            body = json.dumps({"message": "Not Found", "status": "404"} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_broker_without_a_lab_is_explained_by_its_stats() -> None:
    of = recording("4.2.4/stuck/a-hash-that-drains")
    with played(of) as url:
        result = run(of.facts[0].topic, "billing", "--admin-url", url)
    first, *_, advice, command = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert first == (
        "draining: 2 key hashes belong to another consumer now, but a has not acknowledged 2 entries from before "
        "(the counters say so)"
    )
    assert advice.startswith("  next: acknowledge the messages of that consumer")
    assert command == f"  $ pulsarium admin topics stats {of.facts[0].topic}"


def test_a_command_that_destroys_comes_second_and_is_marked() -> None:
    of = recording("4.2.4/stuck/the-consumer-left")
    with played(of) as url:
        result = run(of.facts[0].topic, "billing", "--admin-url", url)
    topic = of.facts[0].topic
    assert result.stdout.splitlines()[-3:] == [
        f"  $ pulsarium admin topics stats {topic}",
        "  this one loses messages or deletes the topic:",
        f"  $ pulsarium admin topics unsubscribe -s billing {topic}",
    ]


def test_a_broker_behind_a_proxy_is_explained_by_its_stats() -> None:
    of = recording("4.2.4/stuck/a-hash-that-drains")
    with played(of) as url, proxying("pulsar://127.0.0.1:1", url) as proxy:
        result = run(of.facts[0].topic, "billing", "--admin-url", proxy.admin_url)
    assert (result.exit_code, result.stdout.partition(":")[0]) == (0, "draining")


def test_a_producer_of_a_broker_without_a_lab_is_refused() -> None:
    of = recording("4.2.4/stuck/a-hash-that-drains")
    with played(of) as url:
        result = run(of.facts[0].topic, "--producer", "--admin-url", url)
    assert (result.exit_code, "no broker of Pulsarium answers here" in result.stderr) == (1, True)


# ---- files


def test_files_of_stats_and_internal_stats_are_explained(tmp_path: Path) -> None:
    (facts,) = recording("5.0.1/stuck/a-message-behind-a-transaction").facts
    (tmp_path / "stats.json").write_text(json.dumps(facts.stats))
    (tmp_path / "internal.json").write_text(json.dumps(facts.internal))
    result = run("--from", f"{tmp_path}/stats.json,{tmp_path}/internal.json", "--json")
    answer = json.loads(result.stdout)
    assert (answer["reason"], answer["details"]["subscription"]) == ("open-transaction", "billing")
    assert answer["details"]["findings"][0]["facts"]["ongoingTxnCount"] == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "is no JSON"), ("[]", "it is no JSON object"), ("{}", "has no subscriptions"), ('{"cursors": {}}', "alone")],
)
def test_a_file_without_stats_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "a.json").write_text(content)
    result = run("--from", str(tmp_path / "a.json"))
    assert (result.exit_code, result.stdout, says in result.stderr) == (1, "", True)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = run("--from", str(tmp_path / "none.json"))
    assert (result.exit_code, "none.json: No such file" in result.stderr) == (1, True)


@pytest.mark.parametrize("line", [[], ["t", "sub", "1:0", "--stats"], ["--producer", "--from", "a.json"]])
def test_a_line_that_asks_for_nothing_or_too_much_is_refused(line: list[str]) -> None:
    assert run(*line).exit_code == 2


# ---- the docs


def test_the_answer_in_the_docs_is_that_for_a_recorded_state(capsys: pytest.CaptureFixture[str]) -> None:
    page = blocks(ROOT / "docs" / "real-clusters.md")
    (shown,) = (each.text for each in page if (each.marker, each.language) == (TESTED, ""))
    (state,) = (each for each in STUCK if each.name == "4.2.4/stuck/a-hash-that-drains")
    tell(state.explained(), json_asked=False)
    assert capsys.readouterr().out.replace("/a-hash-that-drains", "/orders") == shown
