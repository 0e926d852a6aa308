"""Run examples/secure unchanged, except for the port."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .broker_process import BrokerProcess, is_pulsarium

EXAMPLE = Path(__file__).parents[2] / "examples" / "secure"
FREE = ["--tls-port", "0", "--https-port", "0"]

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="the example is about our broker")


def test_the_secure_example_runs_with_its_own_keys(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "secure")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # keys.sh needs a python3 with jwt
    subprocess.run(["./keys.sh"], cwd=folder, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    broker = BrokerProcess(folder, ["--config", "secure.conf", *FREE])
    try:
        url = json.loads((folder / "ready.json").read_text())["service_url_tls"]
        hello = (folder / "hello.py").read_text()
        assert "pulsar+ssl://localhost:6651" in hello
        (folder / "hello.py").write_text(
            hello.replace("localhost:6651", url.rpartition("//")[2].replace("127.0.0.1", "localhost"))
        )
        run = subprocess.run(
            [sys.executable, "-P", "hello.py"], cwd=folder, check=False, capture_output=True, text=True, timeout=60
        )
        assert "Hello over TLS" in run.stdout, run.stderr
    finally:
        status = broker.stop()
    assert status == 0
