"""The options of `pulsarium admin` itself."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarium.broker.config.version import VERSION
from pulsarium.cli import patience
from pulsarium.cli.admin import asked
from pulsarium.cli.admin.asked import AdminRun
from pulsarium.cli.admin.errors import NotConnected, ServerError
from pulsarium.cli.main import cli
from pulsarium.rest.exchange import RestReply, RestRequest
from tests.client.refusing import refusing_port
from tests.workers import unmeasured

from .conftest import Played


def where(played: Played, *options: str, env: dict[str, str | None] | None = None) -> str:
    """Return the URL that these options select."""
    result = played.run(*options, "tenants", "list", env=env)
    assert result.exit_code == 0, result.stderr
    return played.urls[-1].removesuffix("/admin/v2/tenants")


def test_the_broker_url_comes_from_option_variable_or_file(played: Played, tmp_path: Path) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text("# ours\nwebServiceUrl=http://conf:1/\nauthPlugin=token\nauthParams=token:t\n")
    assert where(played) == "http://127.0.0.1:8080"
    assert where(played, "--config", str(conf)) == "http://conf:1"
    assert played.headers[-1]["Authorization"] == "Bearer t"
    assert where(played, env={"PULSAR_CLIENT_CONF": str(conf)}) == "http://conf:1"
    assert where(played, env={"PULSAR_ADMIN_URL": "http://env:2"}) == "http://env:2"
    assert (
        where(played, env={"PULSARIUM_ADMIN_URL": "http://env:3", "PULSAR_ADMIN_URL": "http://env:2"}) == "http://env:3"
    )
    assert where(played, "--admin-url", "http://option:4", "--config", str(conf)) == "http://option:4"


def test_commands_take_certificates_as_other_clients_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 and later want extensions that many private authorities do not write."""
    made = ssl.create_default_context()
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **named: made)
    _ = AdminRun(admin_url="https://a:1").api
    assert not made.verify_flags & ssl.VERIFY_X509_STRICT


def test_an_admin_url_may_name_several_places() -> None:
    assert AdminRun(admin_url="http://a:1,b:2/x").api.urls == ["http://a:1/x", "http://b:2/x"]


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://x:port"])
def test_an_invalid_admin_url_is_refused(url: str) -> None:
    result = CliRunner().invoke(cli, ["admin", "--admin-url", url, "tenants", "list"])
    assert result.exit_code == 1
    assert f"'{url}' is no URL; write http://HOST:PORT" in result.stderr


def test_an_admin_url_of_pulsars_clients_is_refused_as_such() -> None:
    result = CliRunner().invoke(cli, ["admin", "--admin-url", "pulsar://x:6650", "tenants", "list"])
    assert result.exit_code == 1
    assert "'pulsar://x:6650' is the URL of Pulsar's clients; write http://HOST:PORT" in result.stderr


def test_a_client_conf_that_is_not_there(played: Played, tmp_path: Path) -> None:
    assert "No such file" in played.refused("--config", str(tmp_path / "none"), "tenants", "list")
    (tmp_path / "bad").write_text("a=\\u12")
    assert "bad:1:" in played.refused("--config", str(tmp_path / "bad"), "tenants", "list")


def test_a_client_conf_that_is_binary_is_refused(played: Played, tmp_path: Path) -> None:
    (tmp_path / "client.conf").write_bytes(b"\x7fELF\x00")
    said = played.refused("--config", str(tmp_path / "client.conf"), "tenants", "list")
    assert "client.conf is a binary file; a client.conf is text" in said


def test_the_tls_options_set_verification_and_host_names(tmp_path: Path) -> None:
    def context(**options: object) -> ssl.SSLContext:
        session = AdminRun(admin_url="https://x", **options)  # type: ignore[arg-type]
        found = session.api._tls
        assert found is not None
        return found

    strict = context(tls_enable_hostname_verification=True)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    usual = context()
    assert (usual.verify_mode, usual.check_hostname) == (ssl.CERT_REQUIRED, False)
    loose = context(tls_allow_insecure=True, tls_enable_hostname_verification=True)
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)
    conf = tmp_path / "client.conf"
    conf.write_text("tlsAllowInsecureConnection=true\n")
    assert context(config=conf).verify_mode == ssl.CERT_NONE
    assert context(config=conf, tls_allow_insecure=False).verify_mode == ssl.CERT_REQUIRED


def test_certificates_that_cannot_be_read(played: Played, tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.pem")
    said = played.refused("--admin-url", "https://x", "--tls-trust-cert-path", missing, "tenants", "list")
    assert missing in said
    (tmp_path / "ca.pem").write_text("nonsense")
    assert missing in played.refused("--admin-url", "https://x", "--tls-trust-cert-path", missing, "tenants", "list")


def test_output_is_pulsar_admins_own_where_nobody_watches(played: Played) -> None:
    played.answer("GET", "tenants", ["a", "b"])
    assert played.said("tenants", "list") == "a\nb\n"
    assert played.said("--output", "text", "tenants", "list") == "a\nb\n"


def test_output_for_programs(played: Played) -> None:
    played.answer("GET", "tenants", ["a", "b"])
    played.answer("GET", "tenants/a", {"adminRoles": [], "allowedClusters": ["c"]})
    played.answer("GET", "namespaces/a/b/retention", "")
    played.answer("GET", "brokers/version", "4.2.4")
    for place in (["--output", "json", "tenants", "list"], ["tenants", "list", "--output", "json"]):
        assert json.loads(played.said(*place)) == ["a", "b"]
    assert json.loads(played.said("--output", "json", "tenants", "get", "a"))["allowedClusters"] == ["c"]
    assert played.said("--output", "json", "namespaces", "get-retention", "a/b") == "null\n"
    assert played.said("--output", "json", "brokers", "version") == '"4.2.4"\n'


def test_output_for_people(played: Played) -> None:
    played.answer("GET", "namespaces/a/b/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 100})
    played.answer("GET", "namespaces/a/b/messageTTL", "")
    said = played.said("--output", "table", "namespaces", "get-retention", "a/b")
    assert said == "retentionTimeInMinutes  10\nretentionSizeInMB       100\n"
    assert played.said("--output", "table", "namespaces", "get-message-ttl", "a/b") == "not set\n"


def test_a_change_says_nothing(played: Played) -> None:
    for style in ("auto", "text", "table", "json"):
        assert played.said("--output", style, "tenants", "delete", "a") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["topics", "nosuch"],
        ["topics", "create"],
        ["topics", "create", "a", "b"],
        ["topics", "stats", "a", "--nosuch"],
        ["topics", "create-partitioned-topic", "a"],
        ["topics", "create-partitioned-topic", "a", "--partitions", "x"],
        ["topics", "stats", "a/b"],
        ["namespaces", "create", "badname"],
        ["--request-timeout", "0", "tenants", "list"],
        ["--output", "xml", "tenants", "list"],
    ],
)
def test_a_wrong_command_line_ends_with_1_and_is_not_sent(arguments: list[str], played: Played) -> None:
    said = played.refused(*arguments)
    assert re.fullmatch(r"pulsarium: .+ \(see pulsarium admin.* --help\)\n", said)
    assert played.sent == []


@pytest.mark.parametrize("arguments", [[], ["topics"]])
def test_a_group_without_a_command_shows_what_there_is(arguments: list[str], played: Played) -> None:
    assert "Usage: pulsarium admin" in played.refused(*arguments)


def test_a_refusal_gives_its_reason_once(played: Played) -> None:
    played.refuse("GET", "tenants/nope", 404, "Tenant does not exist")
    assert played.refused("tenants", "get", "nope") == "pulsarium: Tenant does not exist\n"


def test_a_caller_without_a_role_is_told_how_to_prove_one(played: Played) -> None:
    played.refuse("GET", "tenants", 401, "Authentication required")
    said = played.refused("tenants", "list")
    assert said == (
        "pulsarium: Authentication required (authenticate with --token, or --auth-plugin and --auth-params, "
        "as a role that may do this)\n"
    )


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_backlog_that_was_not_cleared_is_said(answer: str, played: Played) -> None:
    line = ["admin", "namespaces", "clear-backlog", "public/default"]
    refused = CliRunner().invoke(cli, line, prog_name="pulsarium", input=answer)
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1].startswith("pulsarium: the backlog was not cleared; pass --force ")
    assert played.sent == []


def test_a_refusal_of_a_disabled_feature_says_how_to_enable_it(played: Played) -> None:
    played.refuse("DELETE", "namespaces/a/b", 405, "Broker doesn't allow forced deletion of namespaces")
    said = played.refused("namespaces", "delete", "a/b", "--force")
    assert said.endswith("turn it on with: pulsarium serve --set forceDeleteNamespaceAllowed=true)\n")


def test_version_and_help(played: Played) -> None:
    for option in ("-v", "--version"):
        assert played.said(option) == f"Current version of pulsarium admin is: {VERSION}\n"
    for option in ("-h", "--help"):
        text = played.said(option)
        assert "pulsarium admin topics create-partitioned-topic public/shop/orders --partitions 4" in text
        assert "  ns-isolation-policy  " in text
        assert "persistent  " not in text


def test_help_of_a_group_and_of_a_command_teaches(played: Played) -> None:
    assert "  pulsarium admin topics peek-messages orders -s billing -n 3\n" in played.said("topics", "-h")
    text = played.said("namespaces", "set-retention", "--help")
    assert "  pulsarium admin namespaces set-retention shop/orders --time 3h --size 10G\n" in text


def test_the_groups_say_in_the_list_what_they_say_themselves(played: Played) -> None:
    from pulsarium.cli.admin.main import _GROUPS

    for name, (_, what) in _GROUPS.items():
        assert what in " ".join(played.said(name, "--help").split())


def test_neither_the_broker_nor_protobuf_is_imported() -> None:
    code = (
        "import sys; from pulsarium.cli.admin import main, topics, namespaces, clusters, schemas; print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, env=unmeasured()
    )
    modules = set(run.stdout.split())
    assert not modules & {"trio", "google.protobuf", "h11", "sqlite3", "pulsarium.broker.cluster"}


class Refusing:
    """An `Api` whose first answers are that nobody listens."""

    refusals = 2

    def __init__(self, *arguments: object, read_only: bool) -> None:
        assert isinstance(read_only, bool)

    async def send(self, request: RestRequest) -> RestReply:
        if Refusing.refusals:
            Refusing.refusals -= 1
            raise NotConnected("connection refused")
        raise ServerError(401, "a refusal is an answer")


def test_wait_waits_until_a_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusing, "refusals", 2)
    monkeypatch.setattr(asked, "Api", Refusing)
    monkeypatch.setattr(patience, "PAUSE", 0)
    assert isinstance(AdminRun(wait=600.0).api, Refusing)
    assert Refusing.refusals == 0


def test_wait_ends_with_the_error_of_the_last_attempt() -> None:
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}"
        result = CliRunner().invoke(cli, ["why", "orders", "billing", "--admin-url", url, "--wait", "1ms"])
    assert result.exit_code == 1
    assert f"cannot connect to {url}: connection refused; " in result.stderr
