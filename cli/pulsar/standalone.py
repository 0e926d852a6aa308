"""`bin/pulsar standalone`: `pulsarium serve` with the options, files and log lines of Pulsar's standalone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from pulsarium.broker.logs import Log
from pulsarium.cli.pulsar.apply_config import PREFIX
from pulsarium.cli.refusal import RequestRefused
from pulsarium.cli.serve import PROFILES, gather, serve

log = Log("standalone")

# Options of Pulsar's standalone that have no effect here, with the reason.
_NO_EFFECT: Final = {
    "bookkeeper_dir": "there are no bookies; data is in data/standalone, or in --data",
    "bookkeeper_port": "there are no bookies",
    "functions_worker_conf": "there is no functions worker",
    "metadata_dir": "metadata is kept with the data; data is in data/standalone, or in --data",
    "metadata_url": "metadata is kept with the data",
    "num_bookies": "there are no bookies",
    "only_broker": "there is nothing but a broker",
    "stream_storage_port": "there is no stream storage",
    "zookeeper_dir": "there is no ZooKeeper; data is in data/standalone, or in --data",
    "zookeeper_port": "there is no ZooKeeper",
}
_OF_THE_JVM: Final = ("PULSAR_MEM", "PULSAR_GC", "PULSAR_GC_LOG", "PULSAR_EXTRA_OPTS", "PULSAR_EXTRA_CLASSPATH")
_WRITTEN_BY_PULSAR: Final = (
    "messaging service is ready",
    "Created namespace public/default",
    "Successfully updated the policies on namespace public/default",
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-a", "--advertised-address", metavar="HOST", help="Give clients URLs with this host.")
@click.option("-c", "--config", metavar="FILE", help="Read this standalone.conf.  [default: conf/standalone.conf]")
@click.option("--wipe-data", is_flag=True, help="Delete the data of earlier runs first.")
@click.option("--data", metavar="DIR", help="Keep data there.  [default: data/standalone, in memory if not writable]")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    envvar="PULSARIUM_PROFILE",
    show_envvar=True,
    metavar="NAME",
    help="Behave as `pulsarium serve --profile NAME` does.",
)
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
    os.chdir(home)  # Pulsar resolves relative paths there
    if given["no_broker"]:
        raise RequestRefused("--no-broker: Pulsarium is only a broker; leave the option out")

    from pulsarium.cli.logs import LEVELS, configure
    from pulsarium.cli.run import print_ready, run

    level = os.environ.get("PULSAR_LOG_LEVEL", "info").lower()
    configure(level if level in LEVELS else "info", "text", sys.stdout)
    config = given["config"] or os.environ.get("PULSAR_STANDALONE_CONF") or "conf/standalone.conf"
    for line in (*without_effect(given, os.environ), *not_applied(config, os.environ)):
        log.info(line)
    data = _data_directory(Path(given["data"] or "data/standalone"), must=given["data"] is not None)
    if given["wipe_data"] and data is not None:
        wipe(data)
    options, loaded = gather(_asked_of_serve(config, data, given["profile"], given["advertised_address"]))

    def announce(line: str) -> None:
        print_ready(line)
        for each in lines_when_ready(line):
            log.info(each)

    run(options, loaded, announce)


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


def lines_when_ready(ready_line: str) -> Iterator[str]:
    """Yield the lines that Pulsar's standalone logs when it serves, because launchers of containers wait for them."""
    for url in ready_line.split():
        if url.startswith("http://"):
            yield f"HTTP Service started at {url}"
    yield from _WRITTEN_BY_PULSAR


def _data_directory(directory: Path, *, must: bool) -> Path | None:
    """Return the directory if it is writable or named by --data, else None for data in memory."""
    if must:
        return directory  # the broker reports a directory that it cannot use
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        if os.access(directory, os.W_OK):
            return directory
    line = f"data is kept in memory only: mount a volume at {directory.absolute()} that this user can write"
    log.warning(line)
    return None


def wipe(data: Path) -> None:
    """Delete the database and the entry log in a data directory, unless another process has them open."""
    from pulsarium.broker.storage.database import DATABASE_NAME
    from pulsarium.broker.storage.interface import StorageError
    from pulsarium.broker.storage.log_files import ENTRY_LOGS
    from pulsarium.broker.storage.place import DirectoryLock

    try:
        lock = DirectoryLock(data)
    except StorageError as error:
        raise RequestRefused(f"--wipe-data: {error}") from None
    for pattern in (f"{DATABASE_NAME}*", ENTRY_LOGS):
        for path in data.glob(pattern):
            path.unlink()
    lock.release()
    log.info("deleted the data of earlier runs", directory=data)


def _asked_of_serve(config: str, data: Path | None, profile: str | None, address: str | None) -> dict[str, Any]:
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
    if profile is not None:
        arguments += ["--profile", profile]
    if address is not None:
        arguments += ["--set", f"advertisedAddress={address}"]
    return serve.make_context("standalone", arguments).params
