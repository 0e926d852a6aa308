"""`pulsarium serve`: the options, and what they mean together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.grouped import Decorator, GroupedCommand, options_of, together
from pulsarium.cli.logs import FORMATS, LEVELS
from pulsarium.cli.refusal import RequestRefused

if TYPE_CHECKING:
    from pulsarium.broker.config import Config, LoadedConfig, Profile, ServeOptions

network = options_of("Network")
storage = options_of("Storage")
behaviour = options_of("Behaviour")
tls = options_of("TLS")
output = options_of("Output")

LAST_PORT = 65535
PORT = click.IntRange(0, LAST_PORT)
FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(file_okay=False, path_type=Path)


# of broker/config/profile.py, which is not imported until a broker is wanted
PROFILES = ("pip", "pulsar-4.2", "pulsar-4.1", "pulsar-4.0", "pulsar-3.0", "pulsar-2.11", "pulsar-2.10", "pulsar-2.8")

# the options that are another word for one broker.conf key
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


def broker_options(*, free_ports: bool = False, log_level: str = "info") -> Decorator:
    """The options of a broker, for every command that runs one; `gather` says what they mean.

    `free_ports`: it takes a free port wherever none is named.
    """
    port, http_port = ("a free one", "a free one") if free_ports else ("6650", "8080")
    return together(
        network("--host", metavar="ADDRESS", help="Address to bind.  [default: 127.0.0.1]"),
        network(
            "--port", type=PORT, metavar="N", help=f"Port for Pulsar clients; 0 takes a free one.  [default: {port}]"
        ),
        network(
            "--http-port",
            type=PORT,
            metavar="N",
            help=f"Port for the admin API; 0 takes a free one.  [default: {http_port}]",
        ),
        storage(
            "--data", type=DIRECTORY, metavar="DIR", help="Keep everything in DIR; without it nothing is left on disk."
        ),
        storage(
            "--durability",
            type=click.Choice(["none", "os", "fsync"]),
            help="What a receipt promises with --data: nothing, to outlive this process, or the machine.  "
            "[default: os]",
        ),
        storage("--restore", type=FILE, metavar="FILE", help="Begin with a snapshot, in the place of what DIR holds."),
        storage(
            "--seed", type=FILE, metavar="FILE", help="Make what a TOML or JSON file describes. See pulsarium state."
        ),
        behaviour("--config", type=FILE, metavar="FILE", help="A broker.conf or standalone.conf, as it is."),
        behaviour(
            "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="One broker.conf key; may be repeated."
        ),
        behaviour(
            "--profile",
            type=click.Choice(PROFILES),
            default="pip",
            show_default=True,
            metavar="NAME",
            help="Behave as the PIPs say (pip), or as the released broker does (pulsar-4.2). "
            f"{', '.join(PROFILES[2:])} look to clients like those releases, by protocol version, feature flags and "
            "commands, and behave like pulsar-4.2.",
        ),
        behaviour(
            "--max-protocol-version",
            type=click.IntRange(0, 22),
            metavar="N",
            help="Highest protocol version to speak.  [default: 22, and that of a release with its profile]",
        ),
        behaviour(
            "--brokers",
            type=click.IntRange(min=1),
            default=1,
            metavar="N",
            help="Run N brokers of one cluster; each has the next higher ports.  [default: 1]",
        ),
        behaviour(
            "--compaction-engine",
            metavar="NAME",
            help="What compacts topics: two-phase, spark, or an installed one.  [default: an installed one of others', "
            "or two-phase]",
        ),
        behaviour(
            "--compaction-option",
            "compaction_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="One option of that engine; may be repeated. Of spark: master, work-dir, format, and spark.* "
            "settings.",
        ),
        tls("--tls-port", type=PORT, metavar="N", help="Port for Pulsar clients over TLS; 0 takes a free one."),
        tls("--https-port", type=PORT, metavar="N", help="Port for the admin API over TLS; 0 takes a free one."),
        tls("--tls-cert", type=FILE, metavar="FILE", help="Certificate of the broker, PEM."),
        tls("--tls-key", type=FILE, metavar="FILE", help="Its private key, PEM."),
        tls("--tls-ca", type=FILE, metavar="FILE", help="Certificates that those of clients must come from, PEM."),
        output("--ready-file", type=FILE, metavar="FILE", help="Write URLs and pid there as JSON, once it can serve."),
        output(
            "--log-level", type=click.Choice(LEVELS), default=log_level, show_default=True, help="Least level to log."
        ),
        output(
            "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, help="Log lines on stderr."
        ),
        output(
            "--capture",
            metavar="FILE",
            help="Write every frame of every connection there, but for secrets; into a folder: a new file each time. "
            "See pulsarium capture.",
        ),
        output(
            "--lab-dir",
            type=DIRECTORY,
            metavar="DIR",
            help="Folder below which captures are written that are started over HTTP (pulsarium capture start FILE); "
            "without it they stay in memory.",
        ),
    )


@click.command(cls=GroupedCommand)
@broker_options()
def serve(log_level: str, log_format: str, **asked: Any) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    It prints "pulsarium ready pulsar://... http://..." when it can serve. Options win over --set, and --set over
    --config.

    \b
    In memory, on Pulsar's own ports:
      pulsarium serve
    Kept in ./data, also over a crash:
      pulsarium serve --data ./data
    In a test, on free ports:
      pulsarium serve --port 0 --http-port 0 --ready-file broker.json
    With the settings of a cluster:
      pulsarium serve --config broker.conf --set allowAutoTopicCreation=false
    As the released Pulsar 4.2 behaves:
      pulsarium serve --profile pulsar-4.2
    With every frame in a file, for pulsarium capture show and pulsarium analyze:
      pulsarium serve --capture run.pulscap
    With topics compacted on Spark (pip install "pulsarium[spark]"):
      pulsarium serve --data ./data --compaction-engine spark --compaction-option master=local[4]
    Also over TLS, for pulsar+ssl:// and https:// URLs:
      pulsarium serve --tls-port 6651 --https-port 8443 --tls-cert server.pem --tls-key server.key
    """
    options, loaded = gather(asked)

    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run

    configure(log_level, log_format)
    run(options, loaded)


def gather(asked: dict[str, Any], *, free_ports: bool = False) -> tuple[ServeOptions, LoadedConfig]:
    """The options of a run, from what click read. `free_ports`: those of --config are not taken. Raises Refusal."""
    from pulsarium.broker.config import ConfigError, ServeOptions, load
    from pulsarium.cli.lab.capture.file import capture_file

    if asked["durability"] not in (None, "none") and asked["data"] is None:
        raise RequestRefused(f"--durability {asked['durability']} needs --data DIR: without it nothing is on disk")
    if asked["ready_file"] is not None and not asked["ready_file"].absolute().parent.is_dir():
        raise RequestRefused(f"--ready-file: {asked['ready_file'].parent} is not a directory")
    if asked["lab_dir"] is not None and not asked["lab_dir"].is_dir():
        raise RequestRefused(f"--lab-dir: {asked['lab_dir']} is not a directory; make it first")
    profile = _profile(asked["profile"], asked["max_protocol_version"])
    try:
        loaded = load(asked["config"], asked["overrides"], profile)
    except ConfigError as error:
        raise RequestRefused(str(error)) from None
    _check_tls_options(loaded.config, asked)
    for option in ("restore", "seed"):
        if asked[option] is not None and not asked[option].is_file():
            raise RequestRefused(f"{_named(option)} {asked[option]}: there is no such file")
    if free_ports:
        asked = {**asked, **_free_ports(asked, loaded)}
    config = _with_command_line(loaded.config, asked)
    _check_security(config, {**loaded.places, **{key: _named(option) for option, key in KEYS.items() if asked[option]}})
    options = ServeOptions(
        config=config,
        profile=profile,
        data=asked["data"],
        durability=asked["durability"] or "os",
        brokers=asked["brokers"],
        compaction_engine=asked["compaction_engine"],
        compaction_options=pairs(asked["compaction_options"], "--compaction-option"),
        ready_file=asked["ready_file"],
        restore=asked["restore"],
        seed=asked["seed"],
        capture=None if asked["capture"] is None else capture_file(asked["capture"], "--capture"),
        lab_dir=None if asked["lab_dir"] is None else asked["lab_dir"].absolute(),
    )
    _check_several(options)
    check_engine(options.compaction_engine, options.compaction_options)
    return options, loaded


def pairs(given: Iterable[str], option: str) -> tuple[tuple[str, str], ...]:
    """KEY=VALUE, as often as given."""
    found = []
    for each in given:
        key, equals, value = each.partition("=")
        if not (key and equals):
            raise RequestRefused(f"{option} {each}: it is KEY=VALUE")
        found.append((key, value))
    return tuple(found)


def check_engine(name: str | None, options: tuple[tuple[str, str], ...]) -> None:
    """Refuse an engine of compaction that is not there, or that cannot be as it is asked for."""
    if name is None:
        if options:
            raise RequestRefused("--compaction-option is for the engine that --compaction-engine names")
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
        f"{_named(each)} FILE" for each in ("tls_cert", "tls_key") if not (asked[each] or getattr(config, KEYS[each]))
    ]
    if ports and missing:
        raise RequestRefused(f"{_named(ports[0])} needs {' and '.join(missing)}")
    if files and not ports and not config.has_tls:
        raise RequestRefused(f"{_named(files[0])} has no effect without --tls-port N or --https-port N")


def _check_several(options: ServeOptions) -> None:
    """Refuse what cannot be of more than one broker."""
    count = options.brokers
    if count == 1:
        return
    if options.config.advertisedListeners:
        raise RequestRefused(
            f"--brokers {count}: advertisedListeners has URLs of one broker; set advertisedAddress instead"
        )
    taken = [port for index in range(count) for port in options.ports.nth(index) if port]
    if len(set(taken)) < len(taken):
        raise RequestRefused(
            f"--brokers {count}: each broker has the next higher ports, so leave {count} between those given"
        )
    if max(taken, default=0) > LAST_PORT:
        raise RequestRefused(f"--brokers {count}: the last one's ports would be beyond {LAST_PORT}; begin lower")


def _free_ports(asked: dict[str, Any], loaded: LoadedConfig) -> dict[str, int]:
    """A free port for each that the broker has and the command line does not name."""
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


def _named(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _check_security(config: Config, places: Mapping[str, str]) -> None:
    """Refuse keys, passwords and certificates that cannot be used, by the place that names them."""
    if not (config.authenticationEnabled or config.authorizationEnabled or config.has_tls):
        return
    from pulsarium.broker.auth.authentication import check
    from pulsarium.broker.config import ConfigError

    try:
        check(config)
    except ConfigError as error:
        place = error.where or places.get(error.key, "")
        raise RequestRefused(str(ConfigError(place, error.key, error.reason))) from None


def _profile(name: str, max_protocol_version: int | None) -> Profile:
    from pulsarium.broker.config import ConfigError, profile_of

    try:
        return profile_of(name, max_protocol_version)
    except ConfigError as error:
        raise RequestRefused(f"--{error.where.replace('_', '-')}: {error.reason}") from None
