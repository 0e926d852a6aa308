"""The lab over HTTP, used by an attacker of the machine on which the broker runs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.hostile.process import MB, Served, serving

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="looks into /proc, which is Linux's")


def post(served: Served, path: str, body: bytes, kind: str = "application/json") -> tuple[int, str]:
    """Send a POST request, and return the status and the body of the answer."""
    request = Request(f"{served.admin_url}{path}", body, {"Content-Type": kind}, method="POST")
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def capture(served: Served, path: Path | str) -> int:
    return post(served, "/lab/captures", json.dumps({"path": str(path)}).encode())[0]


def test_a_broker_writes_no_file_that_somebody_names(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert capture(served, tmp_path / "x.pulscap") == 403
        assert capture(served, "x.pulscap") == 403
    assert not list(tmp_path.rglob("*.pulscap"))


def test_a_broker_writes_files_below_one_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    with serving(tmp_path, "--lab-dir", "captures") as served:
        assert capture(served, tmp_path / "x.pulscap") == 400
        assert capture(served, "../x.pulscap") == 400
        assert capture(served, "x.pulscap") == 200
    assert list(tmp_path.rglob("*.pulscap")) == [tmp_path / "captures" / "x.pulscap"]


def test_a_large_body_for_a_restore_goes_to_the_disk(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert post(served, "/lab/restore", b"zeros", "application/octet-stream")[0] == 400  # imports all modules
        served.forget_peak()
        before = served.peak
        assert post(served, "/lab/restore", bytes(200 * MB), "application/octet-stream")[0] == 400
        assert served.peak < before + 32 * MB


def test_a_seed_is_no_larger_than_a_text(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert post(served, "/lab/seed", bytes(65 * MB))[0] == 413
