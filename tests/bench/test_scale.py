"""The programs that measure how cost grows, at a tiny size: each measures what its name says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench.programs import SCALE, SIZES, chosen
from bench.raw_driver import RawDriverError
from bench.scale.backlog import big
from bench.scale.cold import PAGE, cached, forget_cached
from bench.scale.driving import SEND_RECEIPT, count_commands
from bench.work import Work
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from tests.bench.bench import bench

BY_NAME = {program.name: program for program in SCALE}
RECEIPT = BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt={"producer_id": 0, "sequence_id": 0})
ERROR = BaseCommand(
    type=BaseCommand.SEND_ERROR, send_error={"producer_id": 0, "sequence_id": 0, "error": 0, "message": ""}
)
PING = BaseCommand(type=BaseCommand.PING, ping={})


def medians(run: subprocess.CompletedProcess[str]) -> dict[str, float]:
    assert run.returncode == 0, run.stderr
    return {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}


def test_the_scale_programs_and_those_with_many_consumers_are_one_group() -> None:
    group = chosen(["scale"], large=False)
    assert [program for program in group if program.large] == list(SCALE)
    assert len(group) == len(SCALE) + 2 * len(SIZES)
    assert not set(SCALE) & set(chosen([], large=False))


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["scale-topics", "scale-connections", "scale-backlog", "big-backlog", "cold-read"])
def test_each_program_measures_all_its_parts_at_a_tiny_size(name: str) -> None:
    told = medians(bench(name, "--quick", "--scale", "0.2", "--json", "-"))
    program = BY_NAME[name]
    assert {f"{name}.{part.name}" for part in program.parts} < told.keys()
    assert all(told[f"{name}.{part.name}"] > 0 for part in program.parts if part.unit in ("us", "x", "MB", "s"))


@pytest.mark.heavy
def test_topics_with_a_data_directory() -> None:
    assert medians(bench("scale-topics-kept", "--quick", "--json", "-"))["scale-topics-kept.growth"] > 0


def test_a_disk_without_room_is_refused() -> None:
    with pytest.raises(RawDriverError, match="GB of disk are needed"):
        big(Work("pulsar://localhost:1", "topic", 10**12, 10**6, 0, ""))


def test_the_cached_share_of_files_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100 * PAGE)
    assert cached(tmp_path) == 1
    forget_cached(tmp_path)
    assert 0 <= cached(tmp_path) <= 1  # tmpfs keeps its pages in the cache


def test_only_the_wanted_commands_may_come() -> None:
    receipt, ping = RECEIPT.SerializeToString(), PING.SerializeToString()
    assert count_commands([receipt, ping, receipt], SEND_RECEIPT) == 2
    with pytest.raises(RawDriverError, match="SEND_ERROR"):
        count_commands([receipt, ERROR.SerializeToString()], SEND_RECEIPT)
