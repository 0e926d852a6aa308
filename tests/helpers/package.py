"""Tests in other languages that start a broker with a package of helpers/."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.foreign.toolchains import Toolchain, require

SECONDS = 300.0
# Both runners give a test 5 s, for which a busy machine may stand still.
JEST = ("node_modules/.bin/jest", "--testTimeout=60000")
VITEST = ("node_modules/.bin/vitest", "run", "--no-color", "--testTimeout=60000", "--hookTimeout=60000")


@dataclass(frozen=True)
class Package:
    """A folder of such tests, their command, and what the command prints when all have passed."""

    toolchain: Toolchain
    command: Sequence[str]
    passed: str

    def run(self, environment: Mapping[str, str]) -> tuple[int, str]:
        """Run the tests. Return the exit status and the output."""
        require(self.toolchain)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PULSAR")}
        done = subprocess.run(
            self.command,
            cwd=self.toolchain.folder,
            env={**ours, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    def passes(self, environment: Mapping[str, str]) -> None:
        status, printed = self.run(environment)
        assert status == 0, printed
        assert self.passed in printed
