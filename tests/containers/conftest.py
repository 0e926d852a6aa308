"""The container image, built once for a run of tests, and containers of it."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ENGINE = Path(__file__).parent / "engine"
IMAGE = "localhost/pulsarium:dev"
ENVIRONMENT = dict(os.environ)  # before an engine was found
SECONDS = 180.0  # for actions that take less than one second on an idle machine


class Container:
    """A container of the image."""

    def __init__(self, cli: str, name: str) -> None:
        self.cli = cli
        self.name = name

    def engine(self, *arguments: str, status: int = 0) -> str:
        """Run a command of the engine; return its output."""
        done = subprocess.run([self.cli, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def exec(self, *command: str, status: int = 0) -> str:
        """Run a command in the container; return what it wrote to stdout."""
        return self.engine("exec", self.name, *command, status=status)

    @property
    def log(self) -> str:
        """Return the output of the container, stdout before stderr."""
        done = subprocess.run([self.cli, "logs", self.name], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    def inspect(self, template: str) -> str:
        return self.engine("inspect", "--format", template, self.name).strip()

    def wait_for(self, what: str, happened: Callable[[], object]) -> None:
        end = time.monotonic() + SECONDS
        while not happened():
            assert time.monotonic() < end, f"{what} did not come:\n{self.log}"
            time.sleep(0.05)

    def wait_until_ready(self) -> None:
        """Wait for the last line that launchers wait for."""
        self.wait_for("the broker", lambda: "Successfully updated the policies on namespace public/default" in self.log)

    def port(self, number: int) -> int:
        """Return the port of this machine that leads to a port of the container."""
        return int(self.engine("port", self.name, f"{number}/tcp").split()[0].rpartition(":")[2])

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Return status and body of a GET to the admin API, from outside."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port(8080)}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def engine_with_image() -> str:
    """Build the image, put the engine's address into the environment, and return the engine's command."""
    done = subprocess.run([ENGINE, "build"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True)
    settings = dict(line.split("=", 1) for line in done.stdout.splitlines())
    cli = settings.pop("CONTAINER_CLI")
    os.environ.update(settings)
    return cli


# Each file builds again, because podman's idle API closes. An unchanged build takes a second.
@pytest.fixture(scope="module")
def container_cli() -> str:
    """Return the command of an engine that has the image."""
    return engine_with_image()


@pytest.fixture(scope="module")
def image(container_cli: str) -> str:
    """Return the name of the image, which the engine of DOCKER_HOST has."""
    return IMAGE


@pytest.fixture
def start(container_cli: str, image: str) -> Iterator[Callable[..., Container]]:
    """Yield a function that starts a container, start(*command, options=[...]). Remove the containers afterwards."""
    names: list[str] = []

    def start(*command: str, options: Any = ()) -> Container:
        name = f"pulsarium-test-{uuid.uuid4().hex[:12]}"
        names.append(name)
        arguments = ["run", "--detach", "--name", name, "--publish", "127.0.0.1::6650", "--publish", "127.0.0.1::8080"]
        container = Container(container_cli, name)
        container.engine(*arguments, *options, image, *command)
        return container

    yield start
    for name in names:
        for end in (["kill"], ["rm", "--force", "--volumes"]):  # rm alone gives a shell ten seconds to end itself
            subprocess.run([container_cli, *end, name], capture_output=True, check=False)
