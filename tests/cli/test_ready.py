"""The ready file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulsarium.cli.ready import ready_content, remove_ready_file, remove_stale_ready_file, write_ready_file


@dataclass
class Urls:
    service_url: str = "pulsar://127.0.0.1:1"
    admin_url: str = "http://127.0.0.1:2"
    service_url_tls: str | None = None
    admin_url_tls: str | None = None


CONTENT = ready_content([Urls()], 3)


def test_ports_that_speak_tls_are_named_too() -> None:
    content = json.loads(ready_content([Urls(service_url_tls="pulsar+ssl://127.0.0.1:3")], 3))
    assert content["service_url_tls"] == content["brokers"][0]["service_url_tls"] == "pulsar+ssl://127.0.0.1:3"
    assert "admin_url_tls" not in content


def test_the_ready_file_has_the_urls_of_all_brokers() -> None:
    assert json.loads(CONTENT) == {
        "service_url": "pulsar://127.0.0.1:1",
        "admin_url": "http://127.0.0.1:2",
        "brokers": [{"service_url": "pulsar://127.0.0.1:1", "admin_url": "http://127.0.0.1:2"}],
        "pid": 3,
    }


def test_content_of_several() -> None:
    content = json.loads(ready_content([Urls(), Urls("pulsar://127.0.0.1:3", "http://127.0.0.1:4")], 3))
    assert content["service_url"] == "pulsar://127.0.0.1:1"
    assert [each["admin_url"] for each in content["brokers"]] == ["http://127.0.0.1:2", "http://127.0.0.1:4"]


def test_the_ready_file_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("what was there before")
    write_ready_file(path, CONTENT)
    assert path.read_text() == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "ready.json").mkdir()
    with pytest.raises(OSError, match=r".+"):
        write_ready_file(tmp_path / "ready.json", CONTENT)
    assert [path.name for path in tmp_path.iterdir()] == ["ready.json"]


def test_only_the_own_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    remove_ready_file(path, CONTENT)
    path.write_text("another broker's")
    remove_ready_file(path, CONTENT)
    assert path.exists()
    path.write_text(CONTENT)
    remove_ready_file(path, CONTENT)
    assert not path.exists()


def test_the_file_of_a_dead_broker_is_removed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    path = tmp_path / "ready.json"
    path.write_text(ready_content([Urls()], process.pid))
    remove_stale_ready_file(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [ready_content([Urls()], os.getpid()), "", "[]", "{}", "x", '{"pid": "x"}'])
def test_any_other_file_stays(content: str, tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    remove_stale_ready_file(path)
    path.write_text(content)
    remove_stale_ready_file(path)
    assert path.read_text() == content
