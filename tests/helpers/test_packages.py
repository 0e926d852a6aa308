"""helpers/: the packages that start a broker for tests in other languages pass their own tests, and leave nothing."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulsarium.broker.testing.http import Http
from tests.foreign.broker_process import Address, BrokerProcess
from tests.foreign.deadline import eventually
from tests.foreign.toolchains import CARGO_TEST, HELPER_GO, HELPER_JUNIT, HELPER_NPM, HELPER_RUST
from tests.helpers.package import JEST, SECONDS, VITEST, Package

END_SECONDS = 30.0

pytestmark = [pytest.mark.foreign, pytest.mark.heavy, pytest.mark.timeout(SECONDS + 60)]


PACKAGES = {
    "go": Package(
        HELPER_GO,
        ("env", "CGO_ENABLED=0", "GOPROXY=off", "go", "test", "-mod=readonly", "-count=1", "-v", "."),
        "--- PASS: TestEachTestHasANamespaceOfItsOwn",
    ),
    "jest": Package(HELPER_NPM, JEST, "Tests:       1 skipped, 4 passed, 5 total"),
    "vitest": Package(HELPER_NPM, VITEST, "3 passed | 1 skipped (4)"),
    "junit": Package(HELPER_JUNIT, ("mvn", "-B", "-o", "test"), "Tests run: 4, Failures: 0, Errors: 0, Skipped: 1"),
    "rust": Package(HELPER_RUST, CARGO_TEST, "test result: ok. 3 passed; 0 failed"),
}

RUN_OUTSIDE = """
case "$*" in
    "run --rm --interactive --publish 127.0.0.1:"*" an/image pulsarium serve "*) ;;
    *) echo "no such container: $*" >&2; exit 2 ;;
esac
while [ "$1" != an/image ]; do shift; done
shift 2
"""
"""The beginning of an engine's script, which leaves out the options and the image, and becomes the command."""


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> Package:
    return PACKAGES[request.param]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Address]:
    process = BrokerProcess(tmp_path / "broker")
    yield process.address
    process.kill()


class Started:
    """Notes each broker that a package starts, and waits for the end of all.

    Each broker inherits the writing end of a FIFO, into which its script writes the process id.
    """

    def __init__(self, folder: Path) -> None:
        self._fifo = folder / "started"
        os.mkfifo(self._fifo)
        self._reader = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)
        self._pids: list[int] = []

    def script(self, path: Path, before: str = "") -> Path:
        """Write a script that runs `before`, and then becomes the command `pulsarium`."""
        become = f'exec {sys.executable} -P -m pulsarium "$@"'
        path.write_text(f'#!/bin/sh\n{before}exec 9>"{self._fifo}"\necho $$ >&9\n{become}\n')
        path.chmod(0o755)
        return path

    def expect_end(self) -> None:
        """Assert that brokers were started, and that all have ended."""
        while select.select([self._reader], [], [], END_SECONDS)[0]:
            if not (said := os.read(self._reader, 4096)):  # no process has the other end
                break
            self._pids += map(int, said.split())
        else:
            raise AssertionError(f"the package left brokers that run, or started none: {self._pids}")
        assert self._pids, "the package started no broker"

    def close(self) -> None:
        os.close(self._reader)
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    notes = Started(tmp_path)
    yield notes
    notes.close()


def test_a_package_leaves_no_fault_time_or_namespace_on_a_shared_broker(package: Package, broker: Address) -> None:
    http = Http(broker.admin_url)
    package.passes({"PULSARIUM_SERVICE_URL": broker.service_url, "PULSARIUM_ADMIN_URL": broker.admin_url})
    assert http.call("GET", "/lab/faults") == []
    assert http.call("GET", "/lab/clock")["namespaces"] == []
    eventually(lambda: namespaces_now(http) == ["public/default"], what="the end of the namespaces of tests")


def namespaces_now(http: Http) -> list[str]:
    """Return the namespaces. The call for an absent one deletes those whose last client has left."""
    http.call("DELETE", "/lab/namespaces/public/absent")
    return list(http.call("GET", "/admin/v2/namespaces/public"))


def test_a_package_whose_tests_die_leaves_no_broker(package: Package, started: Started, tmp_path: Path) -> None:
    command = started.script(tmp_path / "broker")
    status, printed = package.run({"PULSARIUM": str(command), "PULSARIUM_TEST_DIES": "1"})
    assert status != 0, printed
    started.expect_end()


def test_a_package_starts_the_image_when_the_command_is_absent(
    package: Package, started: Started, tmp_path: Path
) -> None:
    """A script in the place of the engine runs the command of the container."""
    engines = tmp_path / "bin"
    engines.mkdir()
    started.script(engines / "docker", RUN_OUTSIDE)
    package.passes({"PATH": os.pathsep.join([str(engines), *_without_command()]), "PULSARIUM_IMAGE": "an/image"})
    started.expect_end()


def test_a_package_without_the_command_and_the_image_says_how_to_get_either(package: Package, tmp_path: Path) -> None:
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\necho no such image >&2\nexit 125\n")
    engine.chmod(0o755)
    status, printed = package.run({"PATH": os.pathsep.join([str(engine.parent), *_without_command()])})
    assert status != 0
    assert "no such image" in printed
    assert "type `docker build -t pulsarium .` in a checkout" in printed


def _without_command() -> list[str]:
    """Return the folders of the PATH that do not have the command."""
    return [each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "pulsarium").exists()]
