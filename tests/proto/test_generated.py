"""The checked-in protobuf code, and the script that generates the code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulsarium.proto.generated import MLDataFormats_pb2, PulsarApi_pb2

ROOT = Path(__file__).parents[2]


def test_names_of_our_own() -> None:
    """Another PulsarApi in the same process must not collide."""
    assert PulsarApi_pb2.DESCRIPTOR.name == "pulsarium/proto/PulsarApi.proto"
    assert PulsarApi_pb2.DESCRIPTOR.package == "pulsarium.proto"
    assert MLDataFormats_pb2.DESCRIPTOR.name == "pulsarium/proto/MLDataFormats.proto"
    assert MLDataFormats_pb2.DESCRIPTOR.package == "pulsarium.mledger"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files that the script needs, and return the path of the script."""
    pytest.importorskip("grpc_tools")
    shutil.copytree(ROOT / "proto", tmp_path / "proto", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "scripts").mkdir()
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return Path(shutil.copy(ROOT / "scripts" / "generate", tmp_path / "scripts"))


def run(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([script, *options], capture_output=True, text=True, check=False)


def test_the_code_fits_the_protos(copy: Path) -> None:
    done = run(copy, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_stale_code_is_found_and_made_anew(copy: Path) -> None:
    proto = copy.parents[1] / "proto" / "PulsarApi.proto"
    proto.write_text(proto.read_text() + "\nmessage CommandOfTomorrow {}\n")
    found = run(copy, "--check")
    assert found.returncode == 1
    assert "proto/generated/PulsarApi_pb2.py does not fit proto/PulsarApi.proto: run scripts/generate" in found.stderr
    assert "MLDataFormats" not in found.stderr
    made = run(copy)
    assert (made.returncode, made.stdout.count("wrote")) == (0, 2)
    assert run(copy, "--check").returncode == 0


def test_other_options_are_refused(copy: Path) -> None:
    assert run(copy, "--help").stdout.startswith("usage: scripts/generate")
    assert run(copy, "--chek").returncode == 2
