"""The services of a compose file in an engine that may resolve no names and run no health checks."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

import pytest
import yaml

from tests.containers.conftest import ENGINE, SECONDS, Container

LINES: Final = 30  # of what compose and a container printed
UNHEALTHY: Final = ("running starting", "running unhealthy")


class Project:
    """The services of a compose file, on free ports, under a name of their own.

    podman may have no name server, and its timers of health checks are systemd's, which may not be there. So there, the
    services get addresses in a network that podman has chosen, and the project runs the checks.
    """

    def __init__(self, cli: str, image: str, file: Path) -> None:
        self.cli = cli
        self.file = file
        self.name = f"pulsarium{uuid.uuid4().hex[:12]}"
        self._folder = TemporaryDirectory()
        self._addresses = Path(self._folder.name, "addresses.yaml")
        self._environment = {**os.environ, "PULSARIUM_IMAGE": image, "PULSAR_PORT": "0", "PULSAR_HTTP_PORT": "0"}

    def __enter__(self) -> Self:
        if self.cli == "podman":
            self._give_addresses()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove all that the project made."""
        try:
            self.down("--volumes")
        finally:
            if self._addresses.exists():
                Container(self.cli, self.name).engine("network", "rm", "--force", self.name)
            self._folder.cleanup()

    def up(self) -> None:
        """Start all services, and wait until each that still runs is healthy."""
        with ThreadPoolExecutor(1) as thread:
            self._check_until(thread.submit(self.compose, "up", "--detach", "--no-build"))
        end = time.monotonic() + SECONDS
        while unhealthy := [each for each in self._running() if not self._healthy(each)]:
            if time.monotonic() >= end:
                pytest.fail("\n".join(["no health came", *map(_told, unhealthy)]), pytrace=False)

    def down(self, *options: str) -> None:
        """Remove the containers, and with --volumes the volumes."""
        self.compose("down", "--timeout", "1", *options)

    def compose(self, *arguments: str) -> str:
        """Run a command of compose; return its output. Fail the test with the logs of the containers that failed."""
        files = [self.file, self._addresses] if self._addresses.exists() else [self.file]
        named = [part for file in files for part in ("--file", str(file))]
        command = [str(ENGINE), "compose", "--project-name", self.name, *named, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            failed = [each for each in self._containers() if each.inspect("{{.State.ExitCode}}") != "0"]
            said = [f"compose {' '.join(arguments)} ended with {done.returncode}:", _last(done.stdout + done.stderr)]
            pytest.fail("\n".join([*said, *map(_told, failed)]), pytrace=False)
        return done.stdout

    def container(self, service: str) -> Container:
        (found,) = self._containers("--filter", f"label=com.docker.compose.service={service}")
        return found

    def _give_addresses(self) -> None:
        """Write a second compose file, which gives each service an address, and the addresses of all by their names."""
        engine = Container(self.cli, self.name).engine
        engine("network", "create", self.name)
        subnet = engine("network", "inspect", "--format", "{{(index .Subnets 0).Subnet}}", self.name)
        content = yaml.safe_load(self.file.read_text("utf-8"))
        _gateway, *free = islice(ipaddress.ip_network(subnet.strip()).hosts(), len(content["services"]) + 1)
        addresses = dict(zip(content["services"], map(str, free), strict=True))
        (network,) = content.get("networks", ("default",))
        services = {
            service: {"networks": {network: {"ipv4_address": address}}, "extra_hosts": addresses}
            for service, address in addresses.items()
        }
        version = {key: content[key] for key in ("version",) if key in content}
        networks = {network: {"external": True, "name": self.name}}
        self._addresses.write_text(json.dumps({**version, "networks": networks, "services": services}), "utf-8")

    def _check_until(self, started: Future[str]) -> None:
        """Run the health checks that other services wait for."""
        while not started.done():
            for each in self._running():
                self._healthy(each)
            time.sleep(0.2)
        started.result()

    def _running(self) -> list[Container]:
        return self._containers("--filter", "status=running")

    def _containers(self, *options: str) -> list[Container]:
        label = f"label=com.docker.compose.project={self.name}"
        names = Container(self.cli, self.name).engine("ps", "--all", "--quiet", "--filter", label, *options)
        return [Container(self.cli, name) for name in names.split()]

    def _healthy(self, container: Container) -> bool:
        """Return whether a container is healthy, or has ended meanwhile. Where it is not yet healthy, check it."""
        healthy = container.inspect("{{.State.Status}} {{.State.Health.Status}}") not in UNHEALTHY
        if not healthy and self.cli == "podman":
            subprocess.run([self.cli, "healthcheck", "run", container.name], capture_output=True, check=False)
        return healthy


def _told(container: Container) -> str:
    state = container.inspect("{{.Name}}: {{.State.Status}}, {{.State.ExitCode}}, {{.State.Health.Status}}")
    return f"{state}\n{_last(container.log)}"


def _last(text: str) -> str:
    return "\n".join(text.splitlines()[-LINES:])
