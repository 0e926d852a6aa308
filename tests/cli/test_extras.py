"""Commands of an install without extras name the missing extra."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pulsarium.capture.file import CaptureWriter, Header

TOKENS = (
    "--set authenticationEnabled=true --set tokenSecretKey=x --set "
    "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
)
RUN = "from pulsarium.__main__ import main; main()"


def without(module: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which a module is not installed."""
    program = f"import sys; sys.modules[{module!r}] = None\n{code}"
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("anyio", "pulsarium.client", "client"),
        ("typing_extensions", "pulsarium.client", "client"),
        ("pyspark", "pulsarium.pipeline", "spark"),
    ],
)
def test_a_package_without_its_extra_says_what_to_install(module: str, package: str, extra: str) -> None:
    said = f'{package} needs {module}; install it with: pip install "pulsarium[{extra}]"'
    code = f"try: import {package}\nexcept ImportError as error: print(error)"
    assert without(module, code).stdout == f"{said}\n"


@pytest.mark.parametrize(
    ("line", "module", "what", "extra"),
    [
        ("client produce t -m a", "anyio", "pulsarium.client", "client"),
        ("client consume t -s s", "anyio", "pulsarium.client", "client"),
        ("client read t", "anyio", "pulsarium.client", "client"),
        ("matrix --client python", "cryptography", "pulsarium matrix", "matrix"),
        ("analyze run.pulscap", "pyspark", "pulsarium.pipeline", "spark"),
        pytest.param(
            *("capture export run.pulscap --parquet out", "pyarrow", "pulsarium.pipeline", "spark"),
            marks=pytest.mark.skipif(not find_spec("pyspark"), reason="the error names pyspark first"),
        ),
        ("compact t --data . --engine spark", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        ("serve --compaction-engine spark", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        ("exec --compaction-engine spark true", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        (f"serve {TOKENS}", "jwt", "--set: authenticationProviders: AuthenticationProviderToken", "auth"),
    ],
)
def test_a_command_without_its_extra_is_one_line(
    line: str, module: str, what: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "run.pulscap").open("wb") as capture:
        CaptureWriter(capture.write, Header(wall_ns=0))
    (tmp_path / "pulsarium.db").touch()
    run = without(module, RUN, *line.split())
    said = f'pulsarium: {what} needs {module}; install it with: pip install "pulsarium[{extra}]"\n'
    assert (run.stdout, run.stderr) == ("", said)
    assert run.returncode in (1, 2)
