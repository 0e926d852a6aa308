"""`bin/pulsar standalone`: what its options, files and variables mean for the broker."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, LoadedConfig, ServeOptions, load
from pulsarium.broker.server import open_broker
from pulsarium.broker.storage.place import DirectoryLock
from pulsarium.cli import logs, run
from pulsarium.cli.pulsar import metadata
from pulsarium.cli.pulsar.apply_config import main as apply_config
from pulsarium.cli.pulsar.conf import main as write_conf
from pulsarium.cli.pulsar.main import main
from pulsarium.cli.pulsar.metadata import Place, ask
from pulsarium.cli.pulsar.standalone import lines_when_ready
from pulsarium.cli.refusal import RunRefused
from pulsarium.cli.run import Around
from tests.cli.pulsar.programs import Home
from tests.client.refusing import refusing_port

FREE = ("brokerServicePort=0", "webServicePort=0")


class Bench:
    """A folder like the image's /pulsar, which records the options of each broker that would have started."""

    def __init__(self, home: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self.home = home
        self.runs: list[ServeOptions] = []
        self.command = "standalone"
        self._capfd = capfd
        self._caplog = caplog

    def take(
        self, options: ServeOptions, loaded: LoadedConfig, announce: Callable[[str], None], around: Around
    ) -> None:
        self.runs.append(options)
        self.around = around
        announce("pulsarium ready pulsar://0.0.0.0:6650 http://0.0.0.0:8080")

    def options(self, *arguments: str) -> ServeOptions:
        with pytest.raises(SystemExit) as ended:
            main(self.home, [self.command, *arguments])
        assert (ended.value.code or 0, self._capfd.readouterr().err) == (0, "")
        return self.runs[-1]

    def refusal(self, *arguments: str, status: int = 2) -> str:
        with pytest.raises(SystemExit) as ended:
            main(self.home, [self.command, *arguments])
        out, err = self._capfd.readouterr()
        assert (ended.value.code, out, self.runs) == (status, "", [])
        return err

    @property
    def log(self) -> list[str]:
        """Return what was logged before the broker could serve."""
        messages = [record.getMessage() for record in self._caplog.records]
        return messages[: messages.index("HTTP Service started at http://0.0.0.0:8080")]


@pytest.fixture
def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Bench:
    caplog.set_level(logging.INFO, "pulsarium")
    bench = Bench(tmp_path, capfd, caplog)
    write_conf(str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "run", bench.take)
    monkeypatch.setattr(logs, "configure", lambda level, style, stream: None)
    for name in list(os.environ):
        if name.startswith("PULSAR"):
            monkeypatch.delenv(name)
    return bench


def test_standalone_binds_pulsar_s_ports_on_all_addresses_and_keeps_data(bench: Bench) -> None:
    options = bench.options("-nfw", "-nss")
    assert (options.host, options.port, options.http_port) == ("0.0.0.0", 6650, 8080)
    assert (options.config.clusterName, options.data) == ("standalone", Path("data/standalone"))
    assert options.profile == replace(PIP, separate_publish_times=True)
    assert bench.log == []


def test_publish_times_are_separate_unless_switched_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.options("-nfw").profile.separate_publish_times
    assert not bench.options(
        "-nfw", "--profile", "pulsar-4.2", "--no-separate-publish-times"
    ).profile.separate_publish_times
    monkeypatch.setenv("PULSARIUM_SEPARATE_PUBLISH_TIMES", "false")
    assert bench.options("-nfw").profile is PIP


def test_a_configuration_without_an_address_binds_all_of_them(bench: Bench) -> None:
    (bench.home / "my.conf").write_text("clusterName=mine\n")
    options = bench.options("--no-functions-worker", "--no-stream-storage", "--config", "my.conf")
    assert (options.host, options.config.clusterName) == ("0.0.0.0", "mine")


def test_an_address_of_the_configuration_is_kept(bench: Bench) -> None:
    (bench.home / "my.conf").write_text("bindAddress=127.0.0.2\n")
    assert bench.options("-c", "my.conf").host == "127.0.0.2"


def test_a_variable_names_the_configuration(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.home / "my.conf").write_text("clusterName=mine\n")
    monkeypatch.setenv("PULSAR_STANDALONE_CONF", "my.conf")
    assert bench.options().config.clusterName == "mine"


def test_the_option_of_the_advertised_address_wins(bench: Bench) -> None:
    (bench.home / "my.conf").write_text("advertisedAddress=a.example\n")
    assert bench.options("-c", "my.conf", "-a", "b.example").config.advertisedAddress == "b.example"


def test_without_a_functions_worker_it_says_so(bench: Bench) -> None:
    bench.options("-nss")
    assert bench.log == ["Pulsarium has no functions worker: functions, sources and sinks cannot run"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--num-bookies", "3"], "--num-bookies has no effect here: there are no bookies"),
        (["--only-broker"], "--only-broker has no effect here: there is nothing but a broker"),
        (["--zookeeper-port", "2181"], "--zookeeper-port has no effect here: there is no ZooKeeper"),
        (["-fwc", "worker.yml"], "--functions-worker-conf has no effect here: there is no functions worker"),
    ],
)
def test_an_option_without_effect_is_taken_with_a_line(bench: Bench, given: list[str], said: str) -> None:
    bench.options("-nfw", *given)
    assert bench.log == [said]


@pytest.mark.parametrize("name", ["PULSAR_MEM", "PULSAR_GC", "PULSAR_EXTRA_OPTS"])
def test_a_variable_for_the_jvm_is_taken_with_a_line(bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-Xmx1g")
    bench.options("-nfw")
    assert bench.log == [f"{name} has no effect here: there is no JVM"]


@pytest.mark.parametrize("applied", [True, False])
def test_a_variable_that_was_not_applied_is_named(bench: Bench, applied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PREFIX_clusterName", " mine ")
    if applied:
        apply_config([str(bench.home / "conf/standalone.conf")])
    options = bench.options("-nfw")
    line = "PULSAR_PREFIX_clusterName has no effect yet: run bin/apply-config-from-env.py conf/standalone.conf first"
    assert (options.config.clusterName, bench.log) == (("mine", []) if applied else ("standalone", [line]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--no-broker"], "pulsarium: --no-broker: Pulsarium is only a broker; leave the option out\n"),
        (["-w"], "pulsarium: No such option '-w'. See bin/pulsar standalone --help.\n"),
        (["-c", "no.conf"], "pulsarium: --config no.conf: cannot be read: No such file or directory\n"),
    ],
)
def test_standalone_refuses_in_one_line_what_cannot_be(bench: Bench, given: list[str], said: str) -> None:
    assert bench.refusal(*given) == said


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_profile_can_be_named(bench: Bench, by_variable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_variable:
        monkeypatch.setenv("PULSARIUM_PROFILE", "pulsar-4.2")
    given = [] if by_variable else ["--profile", "pulsar-4.2"]
    assert bench.options(*given).profile is PULSAR_4_2


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_proposal_can_be_switched_on(bench: Bench, by_variable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_variable:
        monkeypatch.setenv("PULSARIUM_PIP", "490")
    assert bench.options(*([] if by_variable else ["--pip", "490"])).profile.proposals == {490}


@pytest.fixture
def forbidden(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the data, as the engine of a container makes it for a mount: this user cannot write it."""
    folder = bench.home / "data"
    folder.mkdir()
    make = Path.mkdir

    def refuse(path: Path, *given: Any, **options: Any) -> None:  # root may write despite the permission bits
        if path.parent.absolute() == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        make(path, *given, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    return folder


def test_a_folder_that_cannot_be_written_stops_it_with_the_line_to_type(bench: Bench, forbidden: Path) -> None:
    assert bench.refusal("-nfw", status=1) == (
        "pulsarium: cannot use data/standalone for data: Permission denied; "
        f"let this user write it: sudo chown -R {os.getuid()} {forbidden}; or name another directory; "
        "or set PULSARIUM_IN_MEMORY=true, which keeps nothing\n"
    )


@pytest.mark.parametrize("by_variable", [True, False])
def test_data_is_kept_in_memory_only_when_that_is_asked_for(
    bench: Bench, forbidden: Path, by_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_variable:
        monkeypatch.setenv("PULSARIUM_IN_MEMORY", "true")
    assert bench.options("-nfw", *([] if by_variable else ["--in-memory"])).data is None
    assert (bench.log, list(forbidden.iterdir())) == ([], [])


def test_data_cannot_be_kept_in_memory_and_in_a_folder(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSARIUM_IN_MEMORY", "1")
    said = bench.refusal("-nfw", "--data", "elsewhere")
    assert said == "pulsarium: --data elsewhere and --in-memory contradict each other; name one of the two\n"


def test_a_folder_that_was_asked_for_is_taken_as_it_is(bench: Bench) -> None:
    assert bench.options("--data", "elsewhere").data == Path("elsewhere")


def test_wipe_data_deletes_the_store_and_nothing_else(bench: Bench) -> None:
    data = bench.home / "data/standalone"
    data.mkdir(parents=True)
    for name in ("pulsarium.db", "pulsarium.db-wal", "entries-00000001.log", "notes.txt"):
        (data / name).touch()
    bench.options("--wipe-data")
    assert sorted(each.name for each in data.iterdir()) == ["notes.txt", "pulsarium.lock"]


def test_data_in_use_is_not_wiped(bench: Bench) -> None:
    data = bench.home / "data/standalone"
    lock = DirectoryLock(data)
    try:
        said = bench.refusal("--wipe-data", "-nfw", status=1)
    finally:
        lock.release()
    assert said == f"pulsarium: --wipe-data: data/standalone is in use by another pulsarium (pid {os.getpid()})\n"


def test_standalone_prints_the_lines_that_launchers_wait_for(bench: Bench) -> None:
    ready = "pulsarium ready pulsar://0.0.0.0:6650 http://0.0.0.0:8080 pulsar+ssl://0.0.0.0:6651 https://0.0.0.0:8443"
    assert list(lines_when_ready(ready)) == [
        "HTTP Service started at http://0.0.0.0:8080",
        "messaging service is ready",
        "Created namespace public/default",
        "Successfully updated the policies on namespace public/default",
    ]


@pytest.fixture
def store(image_home: Home) -> Place:
    """Return the address of a running metadata store."""
    image_home.conf("zookeeper.conf", clientPort=0)
    return Place("127.0.0.1", image_home.start("zookeeper")[0])


def cluster_form(bench: Bench, store: Place) -> Bench:
    """Make the bench run `bin/pulsar broker` of a cluster with this store."""
    (bench.home / "conf/broker.conf").write_text(f"clusterName=c1\nadvertisedAddress=me\nmetadataStoreUrl=zk:{store}\n")
    bench.command = "broker"
    return bench


def test_a_broker_takes_broker_conf_and_announces_no_namespace(bench: Bench) -> None:
    (bench.home / "conf/broker.conf").write_text("clusterName=c1\n")
    bench.command = "broker"
    options = bench.options("--run-bookie")
    assert (options.config.clusterName, options.host, options.data) == ("c1", "0.0.0.0", Path("data/standalone"))
    assert bench.log == ["--run-bookie has no effect here: there are no bookies"]
    assert list(lines_when_ready("pulsarium ready", standalone=False)) == ["messaging service is ready"]


def test_a_second_broker_of_a_metadata_store_is_refused(bench: Bench, store: Place) -> None:
    first = ask(store, {"join": {"kind": "broker", "id": "other:8080"}})
    assert cluster_form(bench, store).refusal(status=1) == (
        f"pulsarium: the broker other:8080 serves the cluster of {store}, and two containers share no messages: leave "
        "this broker out, or run several in one container, with pulsarium serve --brokers N\n"
    )
    first.leave()


def test_a_broker_needs_no_metadata_store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "WAIT_SECONDS", 0)
    with refusing_port() as port:
        place = Place("127.0.0.1", port)
        cluster_form(bench, place).options()
    assert bench.log[-1] == f'no metadata store answers, and none is needed store={place} reason="Connection refused"'


async def test_a_broker_shows_the_urls_of_its_cluster(bench: Bench, store: Place) -> None:
    urls = {"serviceUrl": "http://lb:80", "brokerServiceUrl": "pulsar://lb:6650"}
    ask(store, {"clusters": {"c1": urls}}).leave()
    cluster_form(bench, store).options("--in-memory")
    async with open_broker(ServeOptions(config=load(None, FREE).config)) as running, bench.around(running):
        assert running.lab.cluster.metadata.clusters == {"c1": urls}


async def test_seeds_and_scripts_of_a_folder_are_applied_in_the_order_of_their_names(bench: Bench) -> None:
    folder = bench.home / "init.d"
    folder.mkdir()
    (folder / "10-seed.toml").write_text('[[namespaces]]\nname = "public/made"\n')
    (folder / "20-script.sh").write_text("echo $PULSAR_SERVICE_URL >said\n")
    (folder / "30-notes.txt").write_text("exit 1\n")
    bench.options("--in-memory")
    async with open_broker(ServeOptions(config=load(None, FREE).config)) as running, bench.around(running):
        assert "public/made" in running.lab.cluster.metadata.namespaces
        assert (bench.home / "said").read_text() == f"{running.service_url}\n"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.sh", "exit 3", "a.sh ended with 3: mend the script, or remove it from mine"),
        ("a.toml", "x = 1", "mine/a.toml: "),
    ],
)
async def test_a_hook_that_fails_stops_the_broker(bench: Bench, name: str, text: str, reason: str) -> None:
    (bench.home / "mine").mkdir()
    (bench.home / "mine" / name).write_text(text)
    bench.options("--in-memory", "--init-dir", "mine")
    async with open_broker(ServeOptions(config=load(None, FREE).config)) as running:
        with pytest.raises(RunRefused, match=re.escape(reason)):
            async with bench.around(running):
                raise AssertionError("it went on")


def test_a_variable_names_the_file_of_a_snapshot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSARIUM_EXPORT_ON_EXIT", "last.snapshot")
    assert bench.options().export_on_exit == Path("last.snapshot")
