"""examples/java-junit: JUnit tests of a user, which start their own broker."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.foreign.toolchains import JUNIT, require

SECONDS = 500


@pytest.mark.foreign
@pytest.mark.heavy
@pytest.mark.timeout(SECONDS + 30)
def test_the_sample_passes() -> None:
    require(JUNIT)
    report = JUNIT.folder / "target" / "surefire-reports" / "example.OrdersTest.txt"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "PULSARIUM": f"{sys.executable} -P -m pulsarium"}
    run = subprocess.run(
        ["mvn", "-B", "-o", "-q", "test"],
        cwd=JUNIT.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in report.read_text()
