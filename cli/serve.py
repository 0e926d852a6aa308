"""`pulsarium serve`: its options, and the checks that concern several options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.completing import keys
from pulsarium.cli.grouped import Decorator, GroupedCommand, options_of, together
from pulsarium.cli.logs import FORMATS, LEVELS
from pulsarium.cli.parent import with_parent
from pulsarium.cli.refusal import RequestRefused

if TYPE_CHECKING:
    from pulsarium.broker.config import Config, LoadedConfig, Profile, ServeOptions

network = options_of("Network")
storage = options_of("Storage")
behavior = options_of("Behavior")
tls = options_of("TLS")
output = options_of("Output")

LAST_PORT = 65535
PORT = click.IntRange(0, LAST_PORT)
FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(file_okay=False, path_type=Path)
DATA = click.Path(file_okay=False, readable=False, path_type=Path)  # the store says how this user may use it


# A copy of the names in broker/config/profile.py: importing that module would slow down --help.
PROFILES = (
    *("pip", "pulsar-5.0", "pulsar-5.0-m1", "pulsar-4.2", "pulsar-4.1", "pulsar-4.0"),
    *("pulsar-3.0", "pulsar-2.11", "pulsar-2.10", "pulsar-2.8"),
)


def _help_of_pip() -> str:
    from pulsarium.broker.config.proposals import PROPOSALS

    each = "; ".join(f"{number}: {proposal.does}" for number, proposal in PROPOSALS.items())
    return f"Switch on proposals of Pulsar (PIPs) by their numbers, with commas between them. {each}. May be repeated."


# Options that set one broker.conf key each.
KEYS = {
    "host": "bindAddress",
    "port": "brokerServicePort",
    "http_port": "webServicePort",
    "tls_port": "brokerServicePortTls",
    "https_port": "webServicePortTls",
    "tls_cert": "tlsCertificateFilePath",
    "tls_key": "tlsKeyFilePath",
    "tls_ca": "tlsTrustCertsFilePath",
}


def broker_options(*, free_ports: bool = False, log_level: str = "info", seed: str = "--seed") -> Decorator:
    """Return a decorator that adds the options of a command that runs a broker; `gather` interprets them.

    With `free_ports`, a port that is not named is a free one. `seed` is the name of the option --seed.
    """
    port, http_port = ("a free one", "a free one") if free_ports else ("6650", "8080")
    return together(
        network("--host", metavar="ADDRESS", help="Listen on this address.  [default: 127.0.0.1]"),
        network(
            "--port",
            type=PORT,
            metavar="N",
            help=f"Listen for Pulsar clients on this port; 0 takes a free one.  [default: {port}]",
        ),
        network(
            "--http-port",
            type=PORT,
            metavar="N",
            help=f"Listen for HTTP, such as the admin API, on this port; 0 takes a free one.  [default: {http_port}]",
        ),
        storage("--data", type=DATA, metavar="DIR", help="Keep all data in DIR. Without --data, nothing is on disk."),
        storage(
            "--durability",
            type=click.Choice(["none", "os", "fsync"]),
            help="Choose what a receipt promises with --data: nothing (none), that the message outlives this "
            "process (os), or a crash of the machine (fsync).  [default: os]",
        ),
        storage("--restore", type=FILE, metavar="FILE", help="Replace the data with this snapshot before the start."),
        storage(
            seed,
            "seed",
            type=FILE,
            metavar="FILE",
            help="Create what this TOML or JSON file describes. See pulsarium state.",
        ),
        behavior("--config", type=FILE, metavar="FILE", help="Read this broker.conf or standalone.conf."),
        behavior(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            shell_complete=keys,
            help="Set one broker.conf key. May be repeated.",
        ),
        behavior(
            "--profile",
            type=click.Choice(PROFILES),
            default="pip",
            show_default=True,
            metavar="NAME",
            help="Behave as the PIPs say (pip), or as a released broker does (pulsar-5.0, pulsar-5.0-m1, pulsar-4.2, "
            "pulsar-4.0, pulsar-3.0). pulsar-4.1 behaves like pulsar-4.2, and pulsar-2.11, pulsar-2.10 and pulsar-2.8 "
            "like pulsar-3.0, with the protocol version, the feature flags and the commands of their release.",
        ),
        behavior("--pip", multiple=True, metavar="NUMBERS", late_help=_help_of_pip),
        behavior(
            "--max-protocol-version",
            type=click.IntRange(0, 22),
            metavar="N",
            help="Speak no protocol version above this one.  [default: 22, or that of the profile's release]",
        ),
        behavior(
            "--separate-publish-times/--no-separate-publish-times",
            default=None,
            help="Store a message in a millisecond at least: a client that waits for each receipt publishes no two "
            "messages in one millisecond, and can seek to each by its publish time.  [default: on with the profile "
            "of a release]",
        ),
        behavior(
            "--brokers",
            type=click.IntRange(min=1),
            default=1,
            metavar="N",
            help="Run N brokers of one cluster. Each takes the next higher ports.  [default: 1]",
        ),
        behavior(
            "--compaction-engine",
            metavar="NAME",
            help="Compact topics with this engine: two-phase, spark, or an installed one.  [default: an installed "
            "engine of another package, or two-phase]",
        ),
        behavior(
            "--compaction-option",
            "compaction_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set one option of that engine. May be repeated. Spark takes master, work-dir, format, and spark.* "
            "settings.",
        ),
        tls(
            "--tls-port",
            type=PORT,
            metavar="N",
            help="Listen for Pulsar clients over TLS on this port; 0 takes a free one.",
        ),
        tls("--https-port", type=PORT, metavar="N", help="Listen for HTTPS on this port; 0 takes a free one."),
        tls("--tls-cert", type=FILE, metavar="FILE", help="The broker's certificate, in PEM."),
        tls("--tls-key", type=FILE, metavar="FILE", help="The broker's private key, in PEM."),
        tls("--tls-ca", type=FILE, metavar="FILE", help="Accept client certificates of these authorities, in PEM."),
        output(
            "--ready-file", type=FILE, metavar="FILE", help="Write URLs and pid there as JSON once the broker serves."
        ),
        output(
            "--log-level",
            type=click.Choice(LEVELS),
            default=log_level,
            show_default=True,
            help="Log this level and above.",
        ),
        output(
            "--log-format",
            type=click.Choice(FORMATS),
            default="text",
            show_default=True,
            help="Write log lines to stderr in this format.",
        ),
        output(
            "--capture",
            metavar="FILE",
            help="Write every frame of every connection to FILE, without secrets. A folder gets a new file each time. "
            "See pulsarium capture.",
        ),
        network(
            "--toxiproxy-port",
            type=PORT,
            metavar="N",
            help="Answer Toxiproxy's control API on this port; 0 takes a free one. Toxiproxy's own port is 8474.",
        ),
        output(
            "--lab-dir",
            type=DIRECTORY,
            metavar="DIR",
            help="Allow captures over HTTP (pulsarium capture start FILE) to write below DIR. Without it, they stay "
            "in memory.",
        ),
    )


@click.command(cls=GroupedCommand)
@broker_options()
@output("--export-on-exit", type=FILE, metavar="FILE", help="Write a snapshot to FILE when the broker ends.")
@with_parent
def serve(log_level: str, log_format: str, with_parent: bool, **asked: Any) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    The broker prints "pulsarium ready pulsar://... http://..." when it can serve. On a terminal, it prints its URLs and
    where the data is. Options win over --set, and --set wins over --config.

    \b
    Serve from memory, on Pulsar's own ports:
      pulsarium serve
    Keep the data in ./data, also over a crash:
      pulsarium serve --data ./data
    Serve a test on free ports:
      pulsarium serve --port 0 --http-port 0 --ready-file broker.json --with-parent
    Keep the state of a run in a file, and begin the next run with it:
      pulsarium serve --export-on-exit last.snapshot
      pulsarium serve --restore last.snapshot
    Use the settings of a cluster:
      pulsarium serve --config broker.conf --set allowAutoTopicCreation=false
    Try proposals that Pulsar does not have yet, or only in 5.0:
      pulsarium serve --pip 490
    Behave as the released Pulsar 4.2 does:
      pulsarium serve --profile pulsar-4.2
    Write every frame to a file, for pulsarium capture show and pulsarium lint:
      pulsarium serve --capture run.pulscap
    Compact topics on Spark (pip install "pulsarium[spark]"):
      pulsarium serve --data ./data --compaction-engine spark --compaction-option master=local[4]
    Serve pulsar+ssl:// and https:// URLs too:
      pulsarium serve --tls-port 6651 --https-port 8443 --tls-cert server.pem --tls-key server.key
    """
    options, loaded = gather(asked)

    from pulsarium.cli.banner import announce
    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run

    configure(log_level, log_format)
    run(options, loaded, partial(announce, options), with_parent=with_parent)


def gather(asked: dict[str, Any], *, free_ports: bool = False) -> tuple[ServeOptions, LoadedConfig]:
    """Return the options of a run, from the values that click read.

    With `free_ports`, the ports of --config are ignored. Raise `Refusal` when the options contradict each other, or
    name something that does not exist.
    """
    from pulsarium.broker.config import ServeOptions
    from pulsarium.cli.lab.capture.file import capture_file

    if asked["durability"] not in (None, "none") and asked["data"] is None:
        raise RequestRefused(f"--durability {asked['durability']} needs --data DIR: without it nothing is on disk")
    check_folder("--ready-file", asked["ready_file"])
    check_folder("--export-on-exit", asked.get("export_on_exit"))
    if asked["lab_dir"] is not None and not asked["lab_dir"].is_dir():
        raise RequestRefused(f"--lab-dir: {asked['lab_dir']} is not a directory; create it first")
    profile = _profile(asked["profile"], asked["max_protocol_version"], asked["separate_publish_times"], asked["pip"])
    loaded = read_keys(asked["config"], asked["overrides"], profile)
    _check_tls_options(loaded.config, asked)
    for option in ("restore", "seed"):
        if asked[option] is not None and not asked[option].is_file():
            raise RequestRefused(f"{named(option)} {asked[option]}: no such file; name an existing one")
    if free_ports:
        asked = {**asked, **_free_ports(asked, loaded)}
    config = _with_command_line(loaded.config, asked)
    check_security(config, {**loaded.places, **{key: named(option) for option, key in KEYS.items() if asked[option]}})
    options = ServeOptions(
        config=config,
        profile=profile,
        data=asked["data"],
        durability=asked["durability"] or "os",
        brokers=asked["brokers"],
        compaction_engine=asked["compaction_engine"],
        compaction_options=pairs(asked["compaction_options"], "--compaction-option"),
        ready_file=asked["ready_file"],
        export_on_exit=asked.get("export_on_exit"),
        restore=asked["restore"],
        seed=asked["seed"],
        capture=None if asked["capture"] is None else capture_file(asked["capture"], "--capture"),
        toxiproxy_port=asked["toxiproxy_port"],
        lab_dir=None if asked["lab_dir"] is None else asked["lab_dir"].absolute(),
    )
    _check_several(options)
    check_toxiproxy(options.toxiproxy_port, options.config)
    check_engine(options.compaction_engine, options.compaction_options)
    return options, loaded


def read_keys(path: Path | None, overrides: Sequence[str], profile: Profile) -> LoadedConfig:
    """Return the keys of a broker.conf, and of --set on top of it. Refuse what cannot be used."""
    from pulsarium.broker.config import ConfigError, load

    try:
        return load(path, overrides, profile)
    except ConfigError as error:
        raise RequestRefused(str(error)) from None


def check_folder(option: str, path: Path | None) -> None:
    """Refuse a file to write whose folder does not exist."""
    if path is not None and not path.absolute().parent.is_dir():
        raise RequestRefused(f"{option}: {path.parent} is not a directory; create it first")


def pairs(given: Iterable[str], option: str) -> tuple[tuple[str, str], ...]:
    """Return the key and value of each KEY=VALUE. Raise `Refusal` for a text of another form."""
    found = []
    for each in given:
        key, equals, value = each.partition("=")
        if not (key and equals):
            raise RequestRefused(f"{option} {each}: write KEY=VALUE")
        found.append((key, value))
    return tuple(found)


def check_engine(name: str | None, options: tuple[tuple[str, str], ...]) -> None:
    """Refuse a compaction engine that is not installed, or options that the engine does not take."""
    if name is None:
        if options:
            raise RequestRefused("--compaction-option needs --compaction-engine NAME")
        return
    from pulsarium.broker.config import ConfigError
    from pulsarium.broker.model.compaction.compaction import make_engine

    try:
        make_engine(name, options)
    except ConfigError as error:
        raise RequestRefused(str(error)) from None


def _check_tls_options(config: Config, asked: dict[str, Any]) -> None:
    """Refuse a port without a certificate, and a certificate without a port."""
    ports = [option for option in ("tls_port", "https_port") if asked[option] is not None]
    files = [option for option in ("tls_cert", "tls_key", "tls_ca") if asked[option] is not None]
    missing = [
        f"{named(each)} FILE" for each in ("tls_cert", "tls_key") if not (asked[each] or getattr(config, KEYS[each]))
    ]
    if ports and missing:
        raise RequestRefused(f"{named(ports[0])} needs {' and '.join(missing)} too")
    if files and not ports and not config.has_tls:
        raise RequestRefused(f"{named(files[0])} has no effect without --tls-port N or --https-port N")


def _check_several(options: ServeOptions) -> None:
    """Refuse options that fit one broker only."""
    count = options.brokers
    if count == 1:
        return
    if options.config.advertisedListeners:
        raise RequestRefused(
            f"--brokers {count}: advertisedListeners names the URLs of one broker; set advertisedAddress instead"
        )
    taken = [port for index in range(count) for port in options.ports.nth(index) if port]
    if len(set(taken)) < len(taken):
        raise RequestRefused(
            f"--brokers {count}: each broker takes the next higher ports; leave {count} between the given ports"
        )
    if max(taken, default=0) > LAST_PORT:
        raise RequestRefused(f"--brokers {count}: the last broker's ports would exceed {LAST_PORT}; choose lower ports")


def check_toxiproxy(port: int | None, config: Config) -> None:
    """Refuse to let other machines control Toxiproxy's API past the authentication."""
    from pulsarium.broker.config.listeners import is_loopback

    host = config.bindAddress
    if port is None or not config.authenticationEnabled or is_loopback(host):
        return
    raise RequestRefused(
        f"--toxiproxy-port: Toxiproxy's API has no authentication, and {host} is open to other machines; "
        "pass --host 127.0.0.1, or leave the option out"
    )


def _free_ports(asked: dict[str, Any], loaded: LoadedConfig) -> dict[str, int]:
    """Return 0 for each port that the broker has and the command line does not name."""
    ports = {option: KEYS[option] for option in ("port", "http_port", "tls_port", "https_port")}
    return {
        option: 0
        for option, key in ports.items()
        if asked[option] is None and loaded.places.get(key) != "--set" and getattr(loaded.config, key) is not None
    }


def _with_command_line(config: Config, asked: dict[str, Any]) -> Config:
    from dataclasses import replace

    given: dict[str, Any] = {key: asked[option] for option, key in KEYS.items() if asked[option] is not None}
    given.update({key: str(value) for key, value in given.items() if isinstance(value, Path)})
    return replace(config, **given)


def named(option: str) -> str:
    """Return the option of the command line that sets a parameter."""
    return f"--{option.replace('_', '-')}"


def check_security(config: Config, places: Mapping[str, str]) -> None:
    """Refuse unusable keys, passwords and certificates, and name the option or the line that sets them."""
    if not (config.authenticationEnabled or config.authorizationEnabled or config.has_tls):
        return
    from pulsarium.broker.auth.authentication import check
    from pulsarium.broker.config import ConfigError

    try:
        check(config)
    except ConfigError as error:
        place = error.where or places.get(error.key, "")
        raise RequestRefused(str(ConfigError(place, error.key, error.reason))) from None


def _profile(
    name: str, max_protocol_version: int | None, separate_publish_times: bool | None, pip: Iterable[str]
) -> Profile:
    from pulsarium.broker.config import ConfigError, profile_of

    try:
        return profile_of(name, max_protocol_version, separate_publish_times, pip)
    except ConfigError as error:
        raise RequestRefused(f"--{error.where.replace('_', '-')}: {error.reason}") from None
