"""Run java-admin/, and record what it prints: `PYTHONPATH=. python -P -m tests.foreign.java_admin`.

Recording needs a real broker: PULSARIUM_TEST_SERVE=scripts/reference-pulsar.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pulsarium.conformance.recordings.releases import PULSAR_4

from .broker_process import Address, BrokerProcess, is_pulsarium
from .recorded import comparable, parsed
from .toolchains import ADMIN, java_command

EXPECTED = ADMIN.folder / "expected.jsonl"
CONFIG = PULSAR_4.folder / "standalone.conf"
"""Configuration of the recorded broker."""
SECONDS = 500

SECURED = CONFIG.with_name("auth.conf")
KEY = b"transcripts-secret-0123456789abcdef"
"""Secret key of the tokens, from `SECURED`."""
BROKERS_OWN = """
brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken
brokerClientAuthenticationParameters=token:{token}
"""

OF_THE_MACHINE = {
    "Brokers.getDynamicConfigurationNames",
    "Brokers.getInternalConfigurationData",
    "Brokers.getRuntimeConfigurations",
}
"""Calls whose results describe the machine or the build. Only the types are compared, as for all of BrokerStats."""


def run(address: Address, *tokens: str) -> list[dict[str, Any]]:
    """Return the lines that the program prints. `tokens` are those of a superuser and of a role without grants."""
    done = subprocess.run(
        [*java_command(ADMIN, "pulsarium.admin.Main"), address.service_url, address.admin_url, *tokens],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def comparable_calls(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the calls among the lines, without values that differ from run to run."""
    for line in lines:
        if "call" in line:
            yield _comparable(line)


def _comparable(line: dict[str, Any]) -> dict[str, Any]:
    call, result = line["call"], line.get("result")
    if call in OF_THE_MACHINE or call.startswith("BrokerStats."):
        line = {**line, "result": type(parsed(result) if isinstance(result, str) else result).__name__}
    elif isinstance(result, str):
        line = {**line, "result": parsed(result)}
    if isinstance(result, list):
        # A real broker keeps policies and more in system topics.
        line = {**line, "result": [item for item in result if not (isinstance(item, str) and "/__" in item)]}
    # Large numbers are ledgers and times of one run.
    arguments = ["NUMBER" if isinstance(item, int) and item > 9 else comparable(item) for item in line["arguments"]]
    return {**comparable(line, statistics="Stats" in call or "Info" in call), "arguments": arguments}


def secured_config(folder: Path) -> Path:
    """Write a broker.conf with authorization and the superuser admin, and return its path."""
    conf = folder / "secured.conf"
    conf.write_text(SECURED.read_text() + BROKERS_OWN.format(token=token("admin")))
    return conf


def token(role: str) -> str:
    """Return a JWT that never expires, signed with HS256."""
    parts = (json.dumps(part).encode() for part in ({"alg": "HS256"}, {"sub": role}))
    signed = b".".join(_encoded(part) for part in parts)
    return (signed + b"." + _encoded(hmac.digest(KEY, signed, hashlib.sha256))).decode()


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


def main() -> None:
    if is_pulsarium():
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [*_lines_of(folder / "open", CONFIG)]
        lines += _lines_of(folder / "secured", secured_config(folder), token("admin"), token("user"))
    failed = [line["failed"] for line in lines if "failed" in line]
    if failed:
        raise SystemExit("\n".join(failed))
    EXPECTED.write_text("".join(json.dumps(call) + "\n" for call in comparable_calls(lines)))


def _lines_of(folder: Path, config: Path, *tokens: str) -> list[dict[str, Any]]:
    process = BrokerProcess(folder, ["--config", str(config)])
    try:
        return run(process.address, *tokens)
    finally:
        process.stop(40)


if __name__ == "__main__":
    main()
