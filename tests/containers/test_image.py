"""The container image: its size, its limits, and its use in place of apachepulsar/pulsar."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from pulsarium.cli.main import cli
from scripts.release import expected_in_wheel
from tests.architecture.source import ROOT
from tests.containers.conftest import Container

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

Start = Callable[..., Container]
MOST_BYTES = 100_000_000  # over the base
# What Testcontainers for Java starts.
TESTCONTAINERS = (
    "/bin/bash",
    "-c",
    (
        "/pulsar/bin/apply-config-from-env.py /pulsar/conf/standalone.conf && "
        "bin/pulsar standalone --no-functions-worker -nss"
    ),
)

# A call of each command in a container that serves, in this order.
CALLS = """\
admin topics create orders
client produce orders --messages first
wait orders --state produced
admin topics create-subscription orders -s billing
why orders billing
why orders billing --stats
status
top
topics --long
tail orders --no-follow
fault list
proxy --help
clock show
capture list
lint --live --start
check --promises
mask list
state reset
explain TopicNotFound
conformance client --list
conformance broker --list 001
conformance client --scenario routing-*,a-value-of-schema-*
explore --runs 1 -- true
completion bash
exec --data /tmp/kept -- pulsarium admin topics create kept
storage show /tmp/kept
compact --data /tmp/kept kept
"""
NEED_SPARK = ("abandon",)


def env(**variables: str) -> list[str]:
    return [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]


def test_the_image_adds_less_than_100_mb_to_its_base(start: Start, image: str) -> None:
    container = start("true")
    found = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
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


def test_the_image_has_what_each_command_needs(start: Start) -> None:
    container = start("sleep", "600")
    for name in cli.list_commands(click.Context(cli)):
        assert f"Usage: pulsarium {name} " in container.exec("pulsarium", name, "--help")


def test_the_image_has_every_module_of_the_checkout(start: Start) -> None:
    program = "cd /opt/pulsarium/lib/python3*/site-packages && find pulsarium pyspark_pulsar -name '*.py'"
    found = start("sleep", "600").exec("sh", "-c", program).split()
    assert set(found) == {name for name in expected_in_wheel(ROOT) if name.endswith(".py")}


def test_each_command_works_in_the_image(start: Start) -> None:
    container = start("pulsarium", "serve")
    container.wait_for("the broker", lambda: "pulsarium ready" in container.log)
    calls = [shlex.split(line) for line in CALLS.splitlines()]
    for call in calls:
        container.exec("pulsarium", *call)
    for name in NEED_SPARK:
        container.exec("pulsarium", name, "/tmp/kept", status=1)
    container.exec("pulsarium", "mcp", status=1)  # needs an extra
    called = {"serve", "mcp", *(call[0] for call in calls), *NEED_SPARK}
    assert called == set(cli.list_commands(click.Context(cli)))


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
    assert container.log.count("these keys have no effect here: loadBalancerEnabled") == 1
    assert container.log.count("this key has no effect here key=functionsWorkerEnabled") == 1
    assert container.log.count("PULSAR_MEM has no effect here: there is no JVM") == 1


def test_the_image_runs_as_the_user_of_pulsar_s_image(start: Start) -> None:
    assert start("sleep", "600").exec("id", "-un") == "pulsar\n"
    assert start("sleep", "600", options=["--user", "pulsar"]).exec("id", "-u") == "10000\n"


@pytest.mark.parametrize("user", ["12345", "12345:54321"])
def test_the_image_runs_as_any_user(start: Start, user: str) -> None:
    options = ["--user", user, *env(PULSAR_PREFIX_clusterName="mine")]
    container = start(*TESTCONTAINERS, options=options)
    container.wait_until_ready()
    assert container.get("/admin/v2/clusters") == (200, '["mine"]')


def test_its_root_may_be_read_only_with_a_volume_for_data(start: Start) -> None:
    first = start(options=["--read-only", "--user", "12345", "--volume", "/pulsar/data"])
    first.wait_until_ready()
    first.exec("bin/pulsar-client", "produce", "orders", "--messages", "kept")
    second = start(options=["--read-only", "--user", "12345", "--volumes-from", first.name])
    second.wait_for("the refusal", lambda: "in use by another pulsarium" in second.log)
    first.engine("stop", first.name)
    third = start(options=["--read-only", "--user", "12345", "--volumes-from", first.name])
    third.wait_until_ready()
    assert "kept" in third.exec("bin/pulsar-client", "consume", "orders", "-s", "s", "-p", "Earliest", "-n", "1")


@pytest.fixture
def folder_of_root() -> Iterator[Path]:
    """Yield a folder that only its owner may write, as Docker makes one for a mount. Another user may read it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_mounted_folder_that_it_cannot_write_stops_it_unless_memory_is_asked_for(
    start: Start, folder_of_root: Path
) -> None:
    mount = ["--volume", f"{folder_of_root}:/pulsar/data"]
    container = start(options=mount)
    container.wait_for("the end", lambda: container.inspect("{{.State.Status}}") == "exited")
    assert container.inspect("{{.State.ExitCode}}") == "1"
    assert "Permission denied; let this user write it: sudo chown -R 10000 /pulsar/data (" in container.log
    in_memory = start(options=[*mount, *env(PULSARIUM_IN_MEMORY="true")])
    in_memory.wait_until_ready()
    folder_of_root.chmod(0o777)  # chown would need root here
    kept = start(options=mount)
    kept.wait_until_ready()
    kept.exec("sh", "-c", "test -s data/standalone/pulsarium.db && rm -r data/standalone")


def test_a_read_only_root_without_a_volume_stops_it(start: Start) -> None:
    container = start(options=["--read-only"])
    container.wait_for("the end", lambda: container.inspect("{{.State.Status}}") == "exited")
    assert "cannot use data/standalone for data: Read-only file system; name a directory" in container.log


def test_an_image_built_on_it_keeps_the_data_of_its_build(start: Start, image: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"FROM {image}\n"
        "RUN bin/pulsar-daemon start standalone -nfw && bin/pulsar-admin topics create built "
        "&& bin/pulsar-daemon stop standalone\n"
    )
    container = start("sleep", "600")
    built = f"{image}-derived"
    container.engine("build", "--quiet", "--tag", built, str(tmp_path))
    try:
        options = ["run", "--rm", built, "sh", "-c"]
        assert container.engine(*options, "ls data/standalone/pulsarium.db").strip() == "data/standalone/pulsarium.db"
    finally:
        container.engine("rmi", built)


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


def test_the_programs_of_public_scripts_are_there(start: Start) -> None:
    container = start()
    container.wait_until_ready()
    url = "http://localhost:8080/admin/v2/clusters"
    for line in (
        f"curl -s -o /dev/null -w %{{http_code}} --retry 3 --retry-connrefused --connect-timeout 3 -i -k -u a:b {url}",
        f"wget -q -O - {url}",
        "nc -z localhost 6650",
        "ps -ef | grep -q standalone",
        "nslookup --help",
        "openssl version",
        "bin/pulsar-perf produce -m 10 -r 0 measured",
        "bin/pulsar-shell -e 'admin topics list public/default' | grep -q measured",
    ):
        container.exec("bash", "-c", line)


def test_no_broker_in_a_container_warns_of_its_address(start: Start) -> None:
    container = start()
    container.wait_until_ready()
    assert "everybody who reaches this broker" not in container.log


def test_seeds_and_scripts_of_a_mounted_folder_are_applied(start: Start, tmp_path: Path) -> None:
    (tmp_path / "10-seed.toml").write_text('[[namespaces]]\nname = "public/made"\n')
    (tmp_path / "20-topic.sh").write_text("pulsar-admin topics create public/made/scripted\n")
    tmp_path.chmod(0o755)
    container = start(options=["--volume", f"{tmp_path}:/pulsar/init.d:ro"])
    container.wait_until_ready()
    topics = container.exec("bin/pulsar-admin", "topics", "list", "public/made")
    assert topics == "persistent://public/made/scripted\n"


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
    container = start("bin/pulsar", "functions-worker")
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
