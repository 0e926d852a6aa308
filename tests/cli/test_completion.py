"""Completions of shells."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator

import pytest
import trio
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner

from pulsarium.cli.main import cli
from pulsarium.proto.topic_name import TopicName
from tests.cli.admin.live import Live, live
from tests.cli.lab.line import LabLine
from tests.client.refusing import refusing_port


@pytest.fixture
async def here(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """Serve the topics `orders`, with a subscription, and `invoices`."""
    async with live() as broker:
        monkeypatch.setenv("PULSARIUM_ADMIN_URL", broker.url)
        for name in ("orders", "invoices", "persistent://public/default/t"):
            broker.bed.broker.topics.create(TopicName.parse(name))
        await (await broker.bed.connect()).subscribe()
        yield broker


def items(line: str) -> list[CompletionItem]:
    *words, incomplete = line.split(" ")
    return ShellComplete(cli, {}, "pulsarium", "_PULSARIUM_COMPLETE").get_completions(words, incomplete)


async def values(line: str) -> list[str]:
    return [each.value for each in await trio.to_thread.run_sync(items, line)]


@pytest.mark.parametrize(
    "command", ["tail", "why", "wait", "client produce", "client consume", "admin topics stats", "admin topics delete"]
)
async def test_topics_of_the_broker_are_completed(here: Live, command: str) -> None:
    assert await values(f"{command} o") == ["orders"]
    assert await values(f"{command} persistent://public/default/i") == ["persistent://public/default/invoices"]


@pytest.mark.parametrize(
    "command", ["why t ", "wait t -s ", "client consume t -s ", "admin topics skip-messages t -s ", "why t s"]
)
async def test_subscriptions_of_the_topic_are_completed(here: Live, command: str) -> None:
    assert await values(command) == ["sub"]


async def test_faults_are_completed_with_what_they_do(here: Live) -> None:
    await LabLine(here, "fault").said("add", "SEND", "drop")
    (item,) = await trio.to_thread.run_sync(items, "fault remove ")
    assert (item.value, item.help) == ("1", "SEND drop, 0 hits")
    assert await values("fault add subs") == ["SUBSCRIBE"]
    assert await values("fault add SEND dr") == ["drop"]


def test_keys_of_broker_conf_are_completed_with_their_meaning() -> None:
    (item,) = items("serve --set brokerDeleteInactiveTopicsEn")
    assert (item.value, item.help) == ("brokerDeleteInactiveTopicsEnabled=", "Delete inactive topics")


async def test_a_real_pulsar_is_asked_for_the_topics_of_the_namespace(
    here: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsarium.cli.admin.errors import AdminError
    from pulsarium.cli.look.console import Console

    def get(console: Console, path: str, **query: object) -> None:
        raise AdminError("no Pulsarium")

    monkeypatch.setattr(Console, "get", get)
    assert await values("admin topics stats o") == ["orders"]
    assert await values("admin topics stats persistent://public/default/o") == ["persistent://public/default/orders"]


@pytest.mark.parametrize("line", ["tail ", "why orders ", "fault remove ", "admin --config none topics stats "])
def test_nothing_is_completed_and_no_error_shown_without_a_broker(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing_port() as port:
        monkeypatch.setenv("PULSARIUM_ADMIN_URL", f"http://127.0.0.1:{port}")
        assert items(line) == []


@pytest.mark.parametrize(
    ("shell", "registers"),
    [("bash", "complete -o nosort -F"), ("zsh", "#compdef pulsarium"), ("fish", "complete --no-files --command")],
)
def test_each_shell_has_a_script(shell: str, registers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).stdout
    assert registers in script
    assert f"_PULSARIUM_COMPLETE={shell}_complete" in script
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert CliRunner().invoke(cli, ["completion"]).stdout == script


def test_bash_completes_with_its_script() -> None:
    script = CliRunner().invoke(cli, ["completion", "bash"]).stdout
    program = f"""{script}
    pulsarium() {{ :; }}
    complete -p pulsarium"""
    run = subprocess.run(["bash", "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.endswith("-F _pulsarium_completion pulsarium\n")


def test_another_shell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    refused = CliRunner().invoke(cli, ["completion"])
    assert (refused.exit_code, "bash, zsh, fish" in refused.stderr) == (2, True)
