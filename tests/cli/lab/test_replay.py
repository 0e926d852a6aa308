"""`pulsarium capture replay`: a recorded client talks to another broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result

from pulsarium.broker.testing import running
from pulsarium.capture.file import CaptureReader, EventKind
from pulsarium.cli.main import cli
from pulsarium.client import InitialPosition, connect
from tests.capture.captures import write
from tests.capture.lint.talk import CLIENT, Talk, encoded, entry
from tests.client.refusing import refusing_port


def replay(*arguments: object) -> Result:
    line = ["capture", "replay", *map(str, arguments)]
    return CliRunner().invoke(cli, line, prog_name="pulsarium", catch_exceptions=False)


async def work(url: str) -> None:
    """Publish, consume and acknowledge, with a transaction and a negative acknowledgement."""
    async with (
        connect(url) as client,
        client.create_producer("orders") as producer,
        client.subscribe("orders", "billing", initial_position=InitialPosition.Earliest) as consumer,
    ):
        for number in range(3):
            await producer.send(f"{number}".encode())
            await consumer.acknowledge(await consumer.receive())
        async with client.transaction(timeout=60) as txn:
            await producer.send(b"in a transaction", txn=txn)
        await consumer.acknowledge(await consumer.receive())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "run.pulscap"
    with running() as broker:
        capture = broker.captures.start(path)
        trio.run(work, broker.service_url)
        capture.stop()
    return path


@pytest.fixture
def other() -> Iterator[str]:
    with running() as broker:
        # the ids of ledgers and transactions differ from those of the recording
        trio.run(work_elsewhere, broker.service_url)
        yield broker.service_url


async def work_elsewhere(url: str) -> None:
    async with (
        connect(url) as client,
        client.create_producer("elsewhere") as producer,
        client.transaction(timeout=60) as txn,
    ):
        await producer.send(b"", txn=txn)


def test_another_broker_of_ours_answers_as_recorded(recorded: Path, other: str, tmp_path: Path) -> None:
    out = tmp_path / "again.pulscap"
    said = replay(recorded, "--url", other, "--out", out)
    assert (said.stdout, said.exit_code) == ("no difference\n", 0)
    frames = [each for each in CaptureReader().feed(out.read_bytes()) if each.kind is EventKind.FRAME]
    assert len(frames) > 30


def test_another_answer_is_a_difference(tmp_path: Path, other: str) -> None:
    talk = Talk()
    talk.greet()
    talk.client("UNSUBSCRIBE", consumer_id=9, request_id=1)
    talk.broker("SUCCESS", request_id=1)
    said = replay(write(tmp_path / "run.pulscap", [talk]), "--url", other)
    assert said.exit_code == 1
    assert "-> SUCCESS" in said.stdout
    assert "-> ERROR" in said.stdout


def test_frames_that_never_come_are_awaited_once(tmp_path: Path, other: str) -> None:
    talk = Talk()
    talk.greet()
    for _ in range(200):
        talk.deliver(1, consumer=5)
    said = replay(write(tmp_path / "run.pulscap", [talk]), "--url", other, "--wait", "0.01")
    assert said.exit_code == 1


def test_a_cut_frame_cannot_be_replayed(tmp_path: Path, other: str) -> None:
    talk = Talk()
    data = encoded("SEND", entry(), producer_id=1, sequence_id=1)
    talk.raw(CLIENT, data[:-3], len(data))
    said = replay(write(tmp_path / "run.pulscap", [talk]), "--url", other)
    assert said.exit_code == 1
    assert f"has {len(data) - 3} of {len(data)} bytes: capture without --keep-entry" in said.stderr


def test_a_broker_that_is_absent_is_named(tmp_path: Path) -> None:
    with refusing_port() as port:
        url = f"pulsar://127.0.0.1:{port}"
        said = replay(write(tmp_path / "run.pulscap", [Talk()]), "--url", url)
    assert said.exit_code == 1
    assert said.stderr.startswith(f"pulsarium: capture replay: {url}: ")


@pytest.mark.parametrize("url", ["http://localhost", "pulsar+ssl://localhost"])
def test_only_plain_urls_can_be_replayed_to(tmp_path: Path, url: str) -> None:
    assert replay(write(tmp_path / "run.pulscap", [Talk()]), "--url", url).exit_code == 2
