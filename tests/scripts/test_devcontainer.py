"""The feature of container/devcontainer/: what it installs, and how the broker starts with the container."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.release import build
from tests.architecture.wheel import copied

ROOT = Path(__file__).parents[2]
FEATURE = ROOT / "container" / "devcontainer" / "pulsarium"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree, output = copied(tmp_path_factory.mktemp("tree")), tmp_path_factory.mktemp("built")
    return build(tree, output, Path(sys.executable), 1_700_000_000)[0]


def install(prefix: Path, package: str, serve: str) -> subprocess.CompletedProcess[str]:
    """Run the installer with the options as variables, as tools for development containers do, and without an index."""
    (prefix / "python" / "current").mkdir(parents=True)
    (prefix / "python" / "current" / "bin").symlink_to(Path(sys.executable).parent)
    return subprocess.run(
        ["sh", shutil.copy(FEATURE / "install.sh", prefix / "install.sh")],
        check=False,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PACKAGE": package,
            "SERVE": serve,
            "PREFIX": str(prefix),
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
        },
    )


@contextmanager
def started(prefix: Path) -> Iterator[str]:
    """Yield the first line of a broker that starts beside the command of the container."""
    log = prefix / "pulsarium.log"
    os.mkfifo(log)
    environment = {**os.environ, "TMPDIR": str(prefix), "PYTHONPATH": sysconfig.get_path("purelib")}
    start = str(prefix / "share" / "pulsarium" / "start")
    with subprocess.Popen([start, "sleep", "60"], env=environment, start_new_session=True) as container:
        try:
            with log.open() as lines:
                yield lines.readline()
        finally:
            os.killpg(container.pid, signal.SIGTERM)


@pytest.mark.heavy
def test_a_broker_starts_with_the_container(wheel: Path, tmp_path: Path) -> None:
    installed = install(tmp_path, str(wheel), "--port 0 --http-port 0")
    assert installed.returncode == 0, installed.stderr
    assert (tmp_path / "bin" / "pulsarium").resolve().exists()
    with started(tmp_path) as line:
        ready, said, service_url, _ = line.split()
        assert (ready, said) == ("pulsarium", "ready")
        socket.create_connection(("127.0.0.1", int(service_url.rpartition(":")[2])), timeout=30).close()


@pytest.mark.heavy
def test_a_package_that_cannot_be_had_fails_the_build(tmp_path: Path) -> None:
    assert install(tmp_path, str(tmp_path / "none.whl"), "").returncode != 0


def test_options_of_the_feature_are_variables_of_the_installer() -> None:
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
    installer = (FEATURE / "install.sh").read_text()
    assert feature["id"] == FEATURE.name
    assert {"id", "version", "name"} <= feature.keys()
    for name, option in feature["options"].items():
        assert f"${{{name.upper()}:-" in installer
        assert {"type", "default", "description"} == option.keys()
    assert f'"{feature["options"]["package"]["default"]}"' in installer
    assert feature["entrypoint"] == "/usr/local/share/pulsarium/start"
