"""Programs that we did not write start the image; docs/launchers.md says with which versions.

Repeat the steps of launchers that cannot run here: Testcontainers for .NET, the Node client's own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias

import pulsar
import pytest

from scripts.pages.launchers import read_record

from .conftest import Container
from .launchers import LAUNCHERS, SECONDS, Launcher

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: str(launcher.name))
@pytest.mark.timeout(SECONDS + 30)
def test_an_example_passes_and_docs_say_so(launcher: Launcher, image: str) -> None:
    seen, printed = launcher.run(image)
    assert not seen.failed, printed
    recorded = {each.launcher: each for each in read_record()}
    assert recorded.get(launcher.name) == seen, (
        "docs/launchers.json tells of another run: PYTHONPATH=. .venv/bin/python -P -m tests.containers.launchers, "
        "then scripts/generate-docs"
    )


Start: TypeAlias = Callable[..., Container]


DOTNET_ENVIRONMENT = {
    "authenticateOriginalAuthData": "false",
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
    "CLIENT_PREFIX_authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
    "PULSAR_PREFIX_authenticationRefreshCheckSeconds": "5",
    "PULSAR_PREFIX_tokenSecretKey": "file:///pulsar/secret.key",
    "superUserRoles": "test-user",
}
DOTNET_COMMAND = "while [ ! -f /testcontainers.sh ]; do sleep 0.1; done; /testcontainers.sh"
DOTNET_SCRIPT = """#!/bin/bash
bin/pulsar tokens create-secret-key --output secret.key
token=$(bin/pulsar tokens create --secret-key $PULSAR_PREFIX_tokenSecretKey --subject $superUserRoles)
export brokerClientAuthenticationParameters=token:$token
export CLIENT_PREFIX_authParams=$brokerClientAuthenticationParameters
bin/apply-config-from-env.py conf/standalone.conf
bin/apply-config-from-env-with-prefix.py CLIENT_PREFIX_ conf/client.conf
bin/pulsar standalone --no-functions-worker --no-stream-storage
"""
DOTNET_TOKEN = (
    *("bin/pulsar", "tokens", "create", "--secret-key", "/pulsar/secret.key"),
    *("--subject", "test-user", "--expiry-time", "31536000s"),
)

NODE_CONF = """zookeeperServers=
brokerServicePort=6650
webServicePort=8080
bindAddress=0.0.0.0
advertisedAddress=localhost
clusterName=standalone
authenticationEnabled=false
authenticationProviders=false
superUserRoles=
managedLedgerCacheEvictionWatermark=0.9
nettyMaxFrameSizeBytes=5253120
"""
NODE_SCRIPT = """#!/usr/bin/env bash
set -e
export PULSAR_STANDALONE_CONF=test-conf/standalone.conf
export PULSAR_STANDALONE_USE_ZOOKEEPER=1
bin/pulsar-daemon start standalone --no-functions-worker --no-stream-storage --bookkeeper-dir data/bookkeeper
for i in $(seq 30); do
    curl http://localhost:8080/metrics >/dev/null 2>&1 && exit
    sleep 1
done
exit 1
"""


def test_the_steps_of_testcontainers_for_dotnet(start: Start, tmp_path: Path) -> None:
    environment = [f"--env={name}={value}" for name, value in DOTNET_ENVIRONMENT.items()]
    container = start("-c", DOTNET_COMMAND, options=[*environment, "--entrypoint=/bin/sh"])
    copy(container, executable(tmp_path / "testcontainers.sh", DOTNET_SCRIPT), "/testcontainers.sh")

    container.wait_for("a token", lambda: dotnet_token(container))
    token = dotnet_token(container)
    container.wait_for("the broker", lambda: answers(container, token))
    assert container.get("/admin/v2/clusters")[0] == HTTPStatus.UNAUTHORIZED
    container.exec("bin/pulsar-admin", "topics", "create", "orders")  # conf/client.conf has its token
    round_trip(container, pulsar.AuthenticationToken(token))


def dotnet_token(container: Container) -> str:
    """Ask for a token. Return "" until a key exists."""
    try:
        return container.exec(*DOTNET_TOKEN).strip()
    except AssertionError:
        return ""


def answers(container: Container, token: str) -> bool:
    """Ask for the clusters, which fails until the broker has started."""
    try:
        return container.get("/admin/v2/clusters", token) == (HTTPStatus.OK, '["standalone"]')
    except OSError:
        return False


def test_the_steps_of_the_node_client(start: Start, tmp_path: Path) -> None:
    container = start("sleep", "3600", options=["--interactive"])
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "standalone.conf").write_text(NODE_CONF)
    copy(container, tmp_path / "conf", "/pulsar/test-conf")
    copy(container, executable(tmp_path / "start.sh", NODE_SCRIPT), "/start.sh")
    container.exec("/start.sh")
    round_trip(container)


def test_the_commands_that_testcontainers_for_rust_executes(start: Start) -> None:
    """Testcontainers waits for exit codes, which Podman 4 reports too early for the example in examples/."""
    command = "bin/apply-config-from-env.py conf/standalone.conf && bin/pulsar standalone"
    container = start("sh", "-c", command, options=["--tmpfs=/pulsar/data"])
    container.wait_until_ready()
    container.exec("bin/pulsar-admin", "tenants", "create", "shop")
    container.exec("bin/pulsar-admin", "namespaces", "create", "shop/spring")
    container.exec("bin/pulsar-admin", "topics", "create", "persistent://shop/spring/orders")
    round_trip(container, topic="persistent://shop/spring/orders")


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def copy(container: Container, source: Path, target: str) -> None:
    container.engine("cp", str(source), f"{container.name}:{target}")


def round_trip(
    container: Container, authentication: pulsar.Authentication | None = None, topic: str = "orders"
) -> None:
    client = pulsar.Client(
        f"pulsar://127.0.0.1:{container.port(6650)}",
        authentication=authentication,
        operation_timeout_seconds=30,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn),
    )
    consumer = client.subscribe(topic, "billing")
    client.create_producer(topic).send(b"3 apples")
    assert consumer.receive(timeout_millis=30_000).data() == b"3 apples"
    client.close()
