"""The container image: its size, its limits, and its use in place of apachepulsar/pulsar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.containers.conftest import Container

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

Start = Callable[..., Container]
MOST_BYTES = 80_000_000  # over the base
# What Testcontainers for Java starts.
TESTCONTAINERS = (
    "/bin/bash",
    "-c",
    (
        "/pulsar/bin/apply-config-from-env.py /pulsar/conf/standalone.conf && "
        "bin/pulsar standalone --no-functions-worker -nss"
    ),
)


def env(**variables: str) -> list[str]:
    return [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]


def test_the_image_adds_less_than_80_mb_to_its_base(start: Start, image: str) -> None:
    container = start("true")
    found = re.search(r"^ARG BASE=(\S+)$", (Path(__file__).parents[2] / "Dockerfile").read_text(), re.MULTILINE)
    assert found
    sizes = container.engine("image", "inspect", "--format", "{{.Size}}", image, found[1]).split()
    assert int(sizes[0]) - int(sizes[1]) < MOST_BYTES


def test_the_image_serves_without_a_command(start: Start) -> None:
    container = start()
    container.wait_until_ready()
    assert container.get("/admin/v2/clusters") == (200, '["standalone"]')
    for line in (
        "HTTP Service started at http://0.0.0.0:8080",
        "messaging service is ready",
        "Created namespace public/default",
        "Successfully updated the policies on namespace public/default",
    ):
        assert len(re.findall(re.escape(line), container.log)) == 1
    assert "Function worker service started" not in container.log


def test_a_message_goes_round_by_its_own_commands(start: Start) -> None:
    container = start()
    container.wait_until_ready()
    container.exec("bin/pulsar-client", "produce", "orders", "--messages", "first")
    read = container.exec("bin/pulsar-client", "consume", "orders", "-s", "s", "-p", "Earliest", "-n", "1")
    assert "first" in read
    assert (
        container.exec("bin/pulsar-admin", "topics", "list", "public/default") == "persistent://public/default/orders\n"
    )


def test_a_container_of_testcontainers_is_configured_by_its_environment(start: Start) -> None:
    options = env(
        PULSAR_PREFIX_clusterName="mine",
        PULSAR_PREFIX_transactionCoordinatorEnabled="true",
        PULSARIUM_PROFILE="pulsar-4.2",
    )
    container = start(*TESTCONTAINERS, options=options)
    container.wait_until_ready()
    assert container.get("/admin/v2/clusters") == (200, '["mine"]')
    path = "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions"
    status, body = container.get(path)
    assert (status, json.loads(body)["partitions"]) == (200, 1)


def test_variables_without_effect_are_named_once(start: Start) -> None:
    options = env(PULSAR_PREFIX_loadBalancerEnabled="true", functionsWorkerEnabled="true", PULSAR_MEM="-Xmx1g")
    container = start(*TESTCONTAINERS, options=options)
    container.wait_until_ready()
    assert container.log.count("these keys have no effect here: functionsWorkerEnabled, loadBalancerEnabled") == 1
    assert container.log.count("PULSAR_MEM has no effect here: there is no JVM") == 1


def test_the_image_runs_as_the_user_of_pulsar_s_image(start: Start) -> None:
    assert start("sleep", "600").exec("id", "-u") == "10000\n"


@pytest.mark.parametrize("user", ["12345", "12345:54321"])
def test_the_image_runs_as_any_user(start: Start, user: str) -> None:
    options = ["--user", user, *env(PULSAR_PREFIX_clusterName="mine")]
    container = start(*TESTCONTAINERS, options=options)
    container.wait_until_ready()
    assert container.get("/admin/v2/clusters") == (200, '["mine"]')
    assert "memory only" not in container.log


def test_its_root_may_be_read_only_with_a_volume_for_data(start: Start) -> None:
    first = start(options=["--read-only", "--user", "12345", "--volume", "/pulsar/data"])
    first.wait_until_ready()
    assert "memory only" not in first.log
    first.exec("bin/pulsar-client", "produce", "orders", "--messages", "kept")
    second = start(options=["--read-only", "--user", "12345", "--volumes-from", first.name])
    second.wait_for("the refusal", lambda: "in use by another pulsarium" in second.log)
    first.engine("stop", first.name)
    third = start(options=["--read-only", "--user", "12345", "--volumes-from", first.name])
    third.wait_until_ready()
    assert "kept" in third.exec("bin/pulsar-client", "consume", "orders", "-s", "s", "-p", "Earliest", "-n", "1")


def test_without_a_volume_that_it_can_write_it_keeps_data_in_memory(start: Start) -> None:
    container = start(options=["--read-only", "--mount", "type=tmpfs,destination=/pulsar/data,ro=true"])
    container.wait_until_ready()
    assert "data is kept in memory only: mount a volume at /pulsar/data/standalone" in container.log


def test_its_health_check_says_when_it_answers(start: Start) -> None:
    container = start()
    container.wait_until_ready()
    assert container.exec("healthcheck") == ""
    assert container.engine(
        "image", "inspect", "--format", "{{.Config.Healthcheck}}", "localhost/pulsarium:dev"
    ).strip()
    if container.cli == "podman":  # its timers are systemd's, which may not be there
        container.engine("healthcheck", "run", container.name)
    container.wait_for("health", lambda: container.inspect("{{.State.Health.Status}}") == "healthy")


def test_its_health_check_fails_where_no_broker_answers(start: Start) -> None:
    start("sleep", "600").exec("healthcheck", status=1)


@pytest.mark.parametrize("command", [(), TESTCONTAINERS])
def test_sigterm_stops_it_at_once(start: Start, command: tuple[str, ...]) -> None:
    container = start(*command)
    container.wait_until_ready()
    container.engine("stop", "--time", "30", container.name)
    assert container.inspect("{{.State.ExitCode}}") == "0", "the engine had to kill it"
    assert "stopping signal=SIGTERM" in container.log


def test_tokens_are_made_in_a_running_container(start: Start) -> None:
    """Do what Testcontainers for .NET does, with a broker that takes the tokens."""
    container = start("sleep", "600")
    container.exec("bin/pulsar", "tokens", "create-secret-key", "--output", "/pulsar/secret.key")
    make = ("bin/pulsar", "tokens", "create", "--secret-key", "/pulsar/secret.key", "--expiry-time", "3600s")
    token = container.exec(*make, "--subject", "test-user").strip()
    settings = {
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "authorizationEnabled": "true",
        "superUserRoles": "test-user",
        "tokenSecretKey": "file:///pulsar/secret.key",
    }
    given = [part for key, value in settings.items() for part in ("--env", f"PULSAR_PREFIX_{key}={value}")]
    container.engine("exec", *given, container.name, "bin/apply-config-from-env.py", "conf/standalone.conf")
    container.exec("bin/pulsar-daemon", "start", "standalone", "-nfw")
    assert container.get("/admin/v2/clusters", token) == (200, '["standalone"]')
    assert container.get("/admin/v2/clusters")[0] == 401


def test_the_daemon_starts_and_stops_in_a_sleeping_container(start: Start) -> None:
    """Do what the Node client's own CI does."""
    container = start("sleep", "600")
    container.exec("bin/pulsar-daemon", "start", "standalone")
    assert container.get("/admin/v2/clusters") == (200, '["standalone"]')
    assert "HTTP Service started at" in container.exec("sh", "-c", "cat logs/pulsar-standalone-*.log")
    container.exec("bin/pulsar-daemon", "stop", "standalone")
    container.exec("healthcheck", status=1)


def test_the_prefix_may_be_another(start: Start) -> None:
    container = start("sleep", "600", options=env(MY_clusterName="mine"))
    container.exec("bin/apply-config-from-env-with-prefix.py", "MY_", "conf/standalone.conf")
    assert "clusterName=mine" in container.exec("cat", "conf/standalone.conf").splitlines()


def test_a_program_that_is_not_there_is_refused_in_one_line(start: Start) -> None:
    container = start("bin/pulsar", "broker")
    container.wait_for("the end", lambda: container.inspect("{{.State.Status}}") == "exited")
    assert container.inspect("{{.State.ExitCode}}") == "2"
    assert container.log.count("\n") == 1


def test_nothing_of_a_proxy_stays_in_it(start: Start) -> None:
    container = start("sleep", "600")
    assert "PIP_CERT" not in container.exec("env")
    assert "PIP_CERT" not in container.inspect("{{.Config.Env}}")
    container.exec("test", "!", "-e", "/run/secrets/ca")
    for absent in ("pip", "gcc", "java"):
        container.exec("sh", "-c", f"! command -v {absent}")
