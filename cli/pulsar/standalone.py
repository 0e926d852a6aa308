"""`bin/pulsar standalone` and `broker`: `pulsarium serve` with the options, files and log lines of Pulsar."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.broker.logs import PartLog
from pulsarium.cli.grouped import together
from pulsarium.cli.pulsar.apply_config import PREFIX
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.serve import PROFILES, gather, serve

if TYPE_CHECKING:
    from pulsarium.broker.config import Config
    from pulsarium.cli.pulsar.metadata import Membership
    from pulsarium.cli.run import RunningBrokers

log = PartLog("standalone")

# Options of Pulsar's standalone that have no effect here, with the reason.
_NO_EFFECT: Final = {
    "bookkeeper_dir": "there are no bookies; data is in data/standalone, or in --data",
    "bookkeeper_port": "there are no bookies",
    "functions_worker_conf": "there is no functions worker",
    "bookie_conf": "there are no bookies",
    "metadata_dir": "metadata is kept with the data; data is in data/standalone, or in --data",
    "metadata_url": "metadata is kept with the data",
    "num_bookies": "there are no bookies",
    "only_broker": "there is nothing but a broker",
    "run_bookie": "there are no bookies",
    "run_bookie_autorecovery": "there are no bookies",
    "run_functions_worker": "there is no functions worker",
    "stream_storage_port": "there is no stream storage",
    "zookeeper_dir": "there is no ZooKeeper; data is in data/standalone, or in --data",
    "zookeeper_port": "there is no ZooKeeper",
}
_OF_THE_JVM: Final = ("PULSAR_MEM", "PULSAR_GC", "PULSAR_GC_LOG", "PULSAR_EXTRA_OPTS", "PULSAR_EXTRA_CLASSPATH")
_READY: Final = "messaging service is ready"
_WRITTEN_BY_STANDALONE: Final = (
    "Created namespace public/default",
    "Successfully updated the policies on namespace public/default",
)


_OWN: Final = together(
    click.option("--wipe-data", is_flag=True, help="Delete the data of earlier runs first."),
    click.option("--data", metavar="DIR", help="Keep data there.  [default: data/standalone]"),
    click.option(
        "--in-memory",
        is_flag=True,
        envvar="PULSARIUM_IN_MEMORY",
        show_envvar=True,
        help="Keep data in memory only, until the broker ends.",
    ),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        envvar="PULSARIUM_PROFILE",
        show_envvar=True,
        metavar="NAME",
        help="Behave as `pulsarium serve --profile NAME` does.",
    ),
    click.option(
        "--pip",
        envvar="PULSARIUM_PIP",
        show_envvar=True,
        metavar="NUMBERS",
        help="Switch on proposals of Pulsar, as `pulsarium serve --pip NUMBERS` does.",
    ),
    click.option(
        "--separate-publish-times/--no-separate-publish-times",
        default=True,
        show_default=True,
        envvar="PULSARIUM_SEPARATE_PUBLISH_TIMES",
        show_envvar=True,
        help="Store a message in a millisecond at least, as `pulsarium serve --separate-publish-times` does.",
    ),
    click.option(
        "--init-dir",
        metavar="DIR",
        envvar="PULSARIUM_INIT_DIR",
        show_envvar=True,
        help="Apply the seeds (*.toml, *.json) and the scripts (*.sh) of this folder, before the broker is announced.  "
        "[default: init.d]",
    ),
    click.option(
        "--export-on-exit",
        metavar="FILE",
        envvar="PULSARIUM_EXPORT_ON_EXIT",
        show_envvar=True,
        help="Write a snapshot to FILE when the broker ends, as `pulsarium serve --export-on-exit` does.",
    ),
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-a", "--advertised-address", metavar="HOST", help="Give clients URLs with this host.")
@click.option("-c", "--config", metavar="FILE", help="Read this standalone.conf.  [default: conf/standalone.conf]")
@_OWN
@click.option("-nfw", "--no-functions-worker", is_flag=True, help="Ignored: Pulsarium has no functions worker.")
@click.option("-nss", "--no-stream-storage", is_flag=True, help="Ignored: Pulsarium has no stream storage.")
@click.option("--no-broker", is_flag=True, help="Refused: Pulsarium is only a broker.")
@click.option("-fwc", "--functions-worker-conf", metavar="FILE", help="Ignored.")
@click.option("--bookkeeper-dir", metavar="DIR", help="Ignored.")
@click.option("--bookkeeper-port", metavar="N", help="Ignored.")
@click.option("--metadata-dir", metavar="DIR", help="Ignored.")
@click.option("--metadata-url", metavar="URL", help="Ignored.")
@click.option("--num-bookies", metavar="N", help="Ignored.")
@click.option("--only-broker", is_flag=True, default=None, help="Ignored.")
@click.option("--stream-storage-port", metavar="N", help="Ignored.")
@click.option("--zookeeper-dir", metavar="DIR", hidden=True)
@click.option("--zookeeper-port", metavar="N", hidden=True)
@click.pass_obj
def standalone(home: Path, /, **given: Any) -> None:
    """Run a broker on ports 6650 and 8080 of all addresses until SIGTERM or Ctrl-C.

    Options of Pulsar's standalone that have no effect here are accepted, and named in the log.
    """
    if given["no_broker"]:
        raise RequestRefused("--no-broker: Pulsarium is only a broker; leave the option out")
    config = given["config"] or os.environ.get("PULSAR_STANDALONE_CONF") or "conf/standalone.conf"
    _serve(home, config, given, standalone=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-c", "--broker-conf", metavar="FILE", help="Read this broker.conf.  [default: conf/broker.conf]")
@_OWN
@click.option("-bc", "--bookie-conf", metavar="FILE", help="Ignored.")
@click.option("-fwc", "--functions-worker-conf", metavar="FILE", help="Ignored.")
@click.option("-rb", "--run-bookie", is_flag=True, default=None, help="Ignored.")
@click.option("-ra", "--run-bookie-autorecovery", is_flag=True, default=None, help="Ignored.")
@click.option("-rfw", "--run-functions-worker", is_flag=True, default=None, help="Ignored.")
@click.pass_obj
def broker(home: Path, /, **given: Any) -> None:
    """Run the broker of a cluster form until SIGTERM or Ctrl-C: standalone with conf/broker.conf.

    The broker shows the URLs of initialize-cluster-metadata. One metadata store has one broker.
    """
    config = given["broker_conf"] or os.environ.get("PULSAR_BROKER_CONF") or "conf/broker.conf"
    _serve(home, config, given, standalone=False)


def _serve(home: Path, config: str, given: dict[str, Any], *, standalone: bool) -> None:
    os.chdir(home)  # Pulsar resolves relative paths there

    from pulsarium.cli.logs import LEVELS, configure
    from pulsarium.cli.pulsar.hooks import apply_hooks
    from pulsarium.cli.pulsar.services import STORES
    from pulsarium.cli.run import print_ready, run

    level = os.environ.get("PULSAR_LOG_LEVEL", "info").lower()
    configure(level if level in LEVELS else "info", "text", sys.stdout)
    given = {**dict.fromkeys(_NO_EFFECT), "no_functions_worker": True, **given}
    for line in (*without_effect(given, os.environ), *not_applied(config, os.environ)):
        log.info(line)
    data = None if given["in_memory"] else Path(given["data"] or "data/standalone")
    if data is None and given["data"] is not None:
        raise RequestRefused(f"--data {given['data']} and --in-memory contradict each other; name one of the two")
    options, loaded = gather(_asked_of_serve(config, data, given))
    membership = None if standalone else _join(config, options.config)
    loaded = loaded._replace(ignored=tuple(key for key in loaded.ignored if standalone or key not in STORES))
    if data is not None:
        prepare(data, wipe=given["wipe_data"])

    @asynccontextmanager
    async def around(running: RunningBrokers) -> AsyncIterator[None]:
        known = running.lab.cluster.metadata
        for name, urls in {} if membership is None else membership.clusters.items():
            if name not in known.clusters:
                known.put_cluster(name, urls)
        await apply_hooks(Path(given["init_dir"] or "init.d"), running)
        yield

    def announce(line: str) -> None:
        print_ready(line)
        for each in lines_when_ready(line, standalone=standalone):
            log.info(each)

    try:
        run(options, loaded, announce, around=around)
    finally:
        if membership is not None:
            membership.leave()


def _join(config: str, settings: Config) -> Membership | None:
    """Make the broker known to the metadata store of broker.conf. Raise `RunRefused` where another broker is."""
    from pulsarium.cli.pulsar.services import join, settings_of, store_in

    place = store_in(settings_of(Path.cwd(), {"file": config, "config": None}, "broker.conf", "PULSAR_BROKER_CONF"))
    if place is None:
        return None
    host = settings.advertisedAddress or socket.gethostname()
    web = f"{host}:{settings.webServicePort}"
    urls = {"serviceUrl": f"http://{web}", "brokerServiceUrl": f"pulsar://{host}:{settings.brokerServicePort}"}
    found = join(place, {"kind": "broker", "id": web, **urls})
    if found is not None and found.other is not None:
        found.leave()
        raise RunRefused(
            f"the broker {found.other} serves the cluster of {place}, and two containers share no messages: leave this "
            "broker out, or run several in one container, with pulsarium serve --brokers N"
        )
    return found


def without_effect(given: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each option and variable that has no effect."""
    for option, why in _NO_EFFECT.items():
        if given[option] is not None:
            yield f"--{option.replace('_', '-')} has no effect here: {why}"
    if not given["no_functions_worker"]:
        yield "Pulsarium has no functions worker: functions, sources and sinks cannot run"
    for name in _OF_THE_JVM:
        if environment.get(name):
            yield f"{name} has no effect here: there is no JVM"


def not_applied(config: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each variable with PULSAR_PREFIX_ that was not written to the configuration file."""
    try:
        lines = set(Path(config).read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    except OSError:
        return  # the broker reports the unreadable file
    for name, value in environment.items():
        key = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and f"{key}={value.strip()}" not in lines:
            yield f"{name} has no effect yet: run bin/apply-config-from-env.py {config} first"


def lines_when_ready(ready_line: str, *, standalone: bool = True) -> Iterator[str]:
    """Yield the lines that Pulsar's command logs when it serves, because launchers of containers wait for them."""
    for url in ready_line.split():
        if url.startswith("http://"):
            yield f"HTTP Service started at {url}"
    yield _READY
    if standalone:
        yield from _WRITTEN_BY_STANDALONE


def prepare(data: Path, *, wipe: bool) -> None:
    """Create the data directory, and with `wipe` delete its database and entry log.

    Raise `Refusal` when this user cannot write the directory, or another process has it open.
    """
    from pulsarium.broker.storage.database import DATABASE_NAME
    from pulsarium.broker.storage.interface import StorageError
    from pulsarium.broker.storage.log_files import ENTRY_LOGS
    from pulsarium.broker.storage.place import DirectoryLock, UnwritableError

    try:
        lock = DirectoryLock(data)
    except UnwritableError as error:
        raise RunRefused(f"{error}; or set PULSARIUM_IN_MEMORY=true, which keeps nothing") from None
    except StorageError as error:
        raise RunRefused(f"--wipe-data: {error}" if wipe else str(error)) from None
    if wipe:
        for path in (*data.glob(f"{DATABASE_NAME}*"), *data.glob(ENTRY_LOGS)):
            path.unlink()
        log.info("deleted the data of earlier runs", directory=data)
    lock.release()


def _asked_of_serve(config: str, data: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the equivalent `pulsarium serve`."""
    from pulsarium.broker.config import ConfigError, load

    arguments = ["--config", config]
    try:
        if "bindAddress" not in load(Path(config)).places:
            arguments += ["--set", "bindAddress=0.0.0.0"]
    except ConfigError:
        pass  # gather reports the error
    if data is not None:
        arguments += ["--data", str(data)]
    if given["profile"] is not None:
        arguments += ["--profile", given["profile"]]
    if given["pip"] is not None:
        arguments += ["--pip", given["pip"]]
    arguments.append("--separate-publish-times" if given["separate_publish_times"] else "--no-separate-publish-times")
    if given["export_on_exit"] is not None:
        arguments += ["--export-on-exit", given["export_on_exit"]]
    if given.get("advertised_address") is not None:
        arguments += ["--set", f"advertisedAddress={given['advertised_address']}"]
    return serve.make_context("standalone", arguments).params
