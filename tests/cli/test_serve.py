"""Options of `pulsarium serve` and their combinations, and its errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarium.broker.auth.sources import FORMS
from pulsarium.broker.config import PIP, PULSAR_4_2, Config, LoadedConfig, ServeOptions
from pulsarium.broker.config import PROFILES as BY_NAME
from pulsarium.broker.config.proposals import PROPOSALS
from pulsarium.cli import logs, run
from pulsarium.cli.main import cli
from pulsarium.cli.serve import PROFILES
from pulsarium.proto.installing import remedy
from tests.broker.auth.secured import SECRET, base64_of

SECRET_KEY = f"data:;base64,{base64_of(SECRET)}"
ELSEWHERE = "the folder of relative paths; start in the folder of the file, or write the absolute path"


class Runs:
    """A replacement of the broker that records the options of each run."""

    def __init__(self) -> None:
        self.options: list[ServeOptions] = []
        self.loaded: list[LoadedConfig] = []
        self.logging: list[tuple[str, str]] = []
        self.with_parent: list[bool] = []

    def run(
        self, options: ServeOptions, loaded: LoadedConfig, announce: Callable[[str], None], *, with_parent: bool
    ) -> None:
        self.options.append(options)
        self.loaded.append(loaded)
        self.with_parent.append(with_parent)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    runs = Runs()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "run", runs.run)
    monkeypatch.setattr(logs, "configure", lambda level, style: runs.logging.append((level, style)))
    return runs


def served(runs: Runs, *arguments: str) -> ServeOptions:
    result = CliRunner().invoke(cli, ["serve", *arguments], prog_name="pulsarium", catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "")
    (options,) = runs.options
    return options


def refused(runs: Runs, *arguments: str) -> str:
    """Run options that must be refused, and return the line on stderr."""
    result = CliRunner().invoke(cli, ["serve", *arguments], prog_name="pulsarium", catch_exceptions=False)
    assert (result.exit_code, result.stdout, runs.options) == (2, "", [])
    assert result.stderr.startswith("pulsarium: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("pulsarium: ").rstrip("\n")


def test_nothing_asked_for(runs: Runs) -> None:
    assert served(runs) == ServeOptions()
    assert runs.loaded == [LoadedConfig(Config(transactionCoordinatorEnabled=True))]  # the profile pip sets this
    assert runs.logging == [("info", "text")]


def test_everything_asked_for(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("clusterName=c\nzookeeperServers=z\n")
    options = served(
        runs,
        *("--host", "0.0.0.0", "--port", "0", "--http-port", "1", "--data", "d", "--durability", "fsync"),
        *("--profile", "pulsar-4.2", "--max-protocol-version", "19", "--brokers", "1", "--config", "broker.conf"),
        *("--set", "maxProducersPerTopic=1", "--set", "maxConsumersPerTopic=2", "--ready-file", "r.json"),
        *("--log-level", "debug", "--log-format", "json"),
    )
    assert options.config == Config(
        bindAddress="0.0.0.0",
        brokerServicePort=0,
        webServicePort=1,
        clusterName="c",
        maxProducersPerTopic=1,
        maxConsumersPerTopic=2,
    )
    assert (options.host, options.port, options.http_port) == ("0.0.0.0", 0, 1)
    assert options.profile.name == "pulsar-4.2"
    assert options.profile.max_protocol_version == 19
    assert options.profile.tells_end_of_topic("Pulsar-CPP")
    assert (options.data, options.durability) == (Path("d"), "fsync")
    assert options.ready_file == Path("r.json")
    assert runs.loaded[0].ignored == ("zookeeperServers",)
    assert runs.logging == [("debug", "json")]


def test_options_win_over_set_and_set_over_config(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("brokerServicePort=1\nwebServicePort=1\nbindAddress=0.0.0.0\nclusterName=file\n")
    overrides = ("--set", "brokerServicePort=2", "--set", "webServicePort=2")
    options = served(runs, "--config", "c", *overrides, "--port", "3")
    assert (options.port, options.http_port, options.host) == (3, 2, "0.0.0.0")
    assert options.config.clusterName == "file"


def test_port_zero_on_the_command_line_is_no_missing_option(runs: Runs) -> None:
    assert served(runs, "--set", "brokerServicePort=2", "--port", "0").port == 0


def test_the_names_of_profiles() -> None:
    assert tuple(BY_NAME) == PROFILES


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_can_be_asked_for(runs: Runs, name: str) -> None:
    assert served(runs, "--profile", name).profile is BY_NAME[name]


@pytest.mark.parametrize("given", [("--pip", "490,488"), ("--pip", "490", "--pip", "488")])
def test_proposals_are_switched_on_one_by_one_or_together(runs: Runs, given: tuple[str, ...]) -> None:
    assert served(runs, *given).profile.proposals == {488, 490}


def test_an_unknown_proposal_is_refused(runs: Runs) -> None:
    why = "no PIP 999 can be switched on here; there are 488, 490, 491, 493"
    assert refused(runs, "--pip", "490,999") == f"--pip: {why}"


def test_the_help_says_what_each_proposal_does() -> None:
    shown = " ".join(CliRunner().invoke(cli, ["serve", "--help"], prog_name="pulsarium").output.split())
    assert [each for each in PROPOSALS.values() if f"{each.number}: {each.does}" not in shown] == []


def test_a_state_to_begin_with(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    (tmp_path / "seed.toml").touch()
    options = served(runs, "--restore", "s", "--seed", "seed.toml")
    assert (options.restore, options.seed) == (Path("s"), Path("seed.toml"))


def test_the_profile_decides_the_protocol_version(runs: Runs) -> None:
    assert served(runs, "--profile", "pulsar-4.2").profile is PULSAR_4_2


def test_the_protocol_version_can_be_lowered(runs: Runs) -> None:
    profile = served(runs, "--max-protocol-version", "21").profile
    assert profile.max_protocol_version == 21
    assert profile.name == PIP.name


@pytest.mark.parametrize(
    ("arguments", "separate"),
    [
        ((), False),
        (("--profile", "pulsar-3.0"), True),
        (("--separate-publish-times",), True),
        (("--profile", "pulsar-4.2", "--no-separate-publish-times"), False),
    ],
)
def test_publish_times_are_separate_with_the_profile_of_a_release_or_when_asked(
    runs: Runs, arguments: tuple[str, ...], separate: bool
) -> None:
    assert served(runs, *arguments).profile.separate_publish_times is separate


def test_data_is_kept_by_the_system_unless_told(runs: Runs) -> None:
    assert served(runs, "--data", "d").durability == "os"


BY_TOKEN = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--tls-port 6651", "--tls-port needs --tls-cert FILE and --tls-key FILE too"),
        ("--https-port 8443 --tls-cert c", "--https-port needs --tls-key FILE too"),
        ("--tls-cert c --tls-key k", "--tls-cert has no effect without --tls-port N or --https-port N"),
        ("--set brokerServicePortTls=0", "--set: brokerServicePortTls: needs tlsCertificateFilePath"),
        ("--seed nofile", "--seed nofile: no such file; name an existing one"),
        ("--restore nofile", "--restore nofile: no such file; name an existing one"),
        (
            "--tls-port 0 --tls-cert no.pem --tls-key k",
            f"--tls-cert: tlsCertificateFilePath: no file no.pem in FOLDER, {ELSEWHERE}",
        ),
        (
            "--set authorizationEnabled=true",
            "--set: authorizationEnabled: needs authenticationEnabled=true: only proved roles have rights",
        ),
        (
            f"--set authenticationEnabled=true --set tokenSecretKey=hush! --set authenticationProviders={BY_TOKEN}",
            f"--set: tokenSecretKey: is neither a file nor base64; {FORMS}",
        ),
        ("--capture no/where/f", "--capture: no/where is not a directory"),
        ("--lab-dir no/where", "--lab-dir: no/where is not a directory; create it first"),
        (
            "--brokers 2 --set advertisedListeners=in:pulsar://h:1",
            "--brokers 2: advertisedListeners names the URLs of one broker; set advertisedAddress instead",
        ),
        (
            "--brokers 2 --port 6650 --http-port 6651",
            "--brokers 2: each broker takes the next higher ports; leave 2 between the given ports",
        ),
        ("--brokers 2 --port 65535", "--brokers 2: the last broker's ports would exceed 65535; choose lower ports"),
        ("--durability fsync", "--durability fsync needs --data DIR: without it nothing is on disk"),
        (
            "--profile pulsar-4.2 --max-protocol-version 22",
            "--max-protocol-version: 22 is not between 0 and 21 (pulsar-4.2)",
        ),
        ("--set maxProducersPerTopic=x", None),
        ("--set maxProducerPerTopic=1", None),
        ("--config nowhere.conf", "--config nowhere.conf: cannot be read: No such file or directory"),
        ("--ready-file no/where/r.json", "--ready-file: no/where is not a directory; create it first"),
        ("--export-on-exit no/where/s", "--export-on-exit: no/where is not a directory; create it first"),
        ("--compaction-option a=b", "--compaction-option needs --compaction-engine NAME"),
        ("--compaction-engine two-phase --compaction-option a", "--compaction-option a: write KEY=VALUE"),
        (
            "--compaction-engine two-phase --compaction-option a=b",
            "compaction engine two-phase: TwoPhaseCompactor.__init__() got an unexpected keyword argument 'a'",
        ),
    ],
)
def test_serve_refuses_in_one_line_what_cannot_be(arguments: str, message: str | None, runs: Runs) -> None:
    said = refused(runs, *arguments.split())
    if message is None:
        assert said.startswith(f"--set: {arguments.split()[1].partition('=')[0]}: ")
    else:
        assert said.replace(str(Path.cwd()), "FOLDER") == message


def test_a_wrong_line_of_the_file_is_named(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("\nbrokerServicePort=port\n")
    said = refused(runs, "--config", "broker.conf")
    assert said == "broker.conf:2: brokerServicePort: 'port' is not a whole number from 0 to 65535"


def test_a_folder_for_files_of_the_lab(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    assert served(runs, "--lab-dir", "captures").lab_dir == tmp_path / "captures"


def test_the_broker_ends_with_its_parent_when_asked(runs: Runs) -> None:
    for options in ((), ("--with-parent",)):
        result = CliRunner().invoke(cli, ["serve", *options], prog_name="pulsarium", catch_exceptions=False)
        assert result.exit_code == 0
    assert runs.with_parent == [False, True]


def test_the_control_api_of_toxiproxy_has_a_port(runs: Runs) -> None:
    assert served(runs, "--toxiproxy-port", "8474").toxiproxy_port == 8474


def test_the_control_api_of_toxiproxy_does_not_go_past_authentication(runs: Runs) -> None:
    settings = ("authenticationEnabled=true", f"authenticationProviders={BY_TOKEN}", f"tokenSecretKey={SECRET_KEY}")
    secured = [word for setting in settings for word in ("--set", setting)]
    said = refused(runs, "--toxiproxy-port", "0", "--host", "0.0.0.0", *secured)
    assert said.startswith("--toxiproxy-port: Toxiproxy's API has no authentication, and 0.0.0.0 is open")


def test_an_engine_of_compaction(runs: Runs) -> None:
    pytest.importorskip("pyspark")
    asked = ("--compaction-engine", "spark", "--compaction-option", "master=local[1]")
    options = served(runs, *asked, "--compaction-option", "spark.some.key=a=b")
    assert options.compaction_engine == "spark"
    assert options.compaction_options == (("master", "local[1]"), ("spark.some.key", "a=b"))


def test_an_engine_that_is_not_installed(runs: Runs) -> None:
    said = refused(runs, "--compaction-engine", "spork")
    assert said.startswith("compaction engine spork: no such engine is installed; use one of: ")


def test_spark_without_its_packages(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pulsarium.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    said = refused(runs, "--compaction-engine", "spark")
    assert said == f"compaction engine spark: pulsarium.pipeline needs pyspark; {remedy('spark')}"


@pytest.mark.parametrize(
    "arguments", ["--port 65536", "--durability maybe", "--profile 3.0", "--data broker.conf", "-x"]
)
def test_invalid_serve_options_are_refused(arguments: str, runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").touch()
    result = CliRunner().invoke(cli, ["serve", *arguments.split()], prog_name="pulsarium")
    assert result.exit_code == 2
    assert "pulsarium serve --help" in result.stderr
    assert runs.options == []


def test_the_store_and_not_the_command_line_judges_a_folder_that_this_user_cannot_read(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave the error to the store, whose error has the line to type."""
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may read despite the permission bits
    assert served(runs, "--data", str(tmp_path)).data == tmp_path
