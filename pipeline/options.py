"""Options of the data source, named as in Pulsar's own Spark connector where that has them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pulsarium.pipeline.connector import ADMIN, CLIENT, FAMILIES_INSTEAD, INSTEAD, KEY_STORE, NO_EFFECT

if TYPE_CHECKING:  # Spark starts processes that need no client, and whose imports a query waits for
    from pulsarium.client import Authentication, AuthenticationToken

T = TypeVar("T")

SERVICE_URL, ADMIN_URL = "service.url", "admin.url"
READING, WRITING = "spark.read and spark.readStream", "df.write and df.writeStream"


class Described(NamedTuple):
    """Documentation of one option."""

    name: str
    default: str
    """"" without a default."""
    used_by: str
    """"batch", "stream" or "both"."""
    meaning: str


_OF_CONNECTION: Sequence[Described] = (
    Described(
        SERVICE_URL,
        "",
        "both",
        "the service URL of the brokers, pulsar://host:6650 or pulsar+ssl://host:6651; required",
    ),
    Described(
        "pulsar.client.authPluginClassName",
        "",
        "both",
        "authentication: AuthenticationToken, AuthenticationBasic or AuthenticationTls, with or without Java's package",
    ),
    Described(
        "pulsar.client.authParams",
        "",
        "both",
        "token:... or file:///path of a token; userId and password, or tlsCertFile and tlsKeyFile, as JSON or as "
        "key:value,key:value. The workers read the files",
    ),
    Described(
        "pulsar.client.tlsTrustCertsFilePath",
        "",
        "both",
        "PEM file of the certificate authorities to trust; the default is the system's",
    ),
    Described("pulsar.client.tlsAllowInsecureConnection", "false", "both", "trust any certificate"),
    Described(
        "pulsar.client.tlsHostnameVerificationEnable", "true", "both", "require that the certificate names the host"
    ),
    Described("pulsar.client.connectionTimeoutMs", "10000", "both", "how long to wait for a connection"),
    Described("pulsar.client.operationTimeoutMs", "30000", "both", "how long to wait for an answer of a broker"),
    Described("pulsar.client.tlsCertificateFilePath", "", "both", "PEM file of the client's certificate"),
    Described("pulsar.client.tlsKeyFilePath", "", "both", "PEM file of the private key of that certificate"),
    Described(
        "pulsar.client.useTls",
        "",
        "both",
        "the scheme of service.url decides, so it must be true with pulsar+ssl:// and false with pulsar://",
    ),
    Described("pulsar.client.listenerName", "", "both", "the name among the advertisedListeners of brokers"),
    Described("pulsar.client.maxLookupRedirects", "20", "both", "the most redirects of a lookup"),
    Described("pulsar.client.keepAliveIntervalSeconds", "30", "both", "the time between two PINGs"),
    Described("pulsar.client.initialBackoffIntervalNanos", "100000000", "both", "the time before the first repetition"),
    Described(
        "pulsar.client.maxBackoffIntervalNanos", "60000000000", "both", "the longest time between two repetitions"
    ),
    Described("pulsar.client.description", "", "both", "a text that the stats of topics show behind the version"),
)
_OF_ADMIN = (
    *("authPluginClassName", "authParams", "tlsTrustCertsFilePath", "tlsCertificateFilePath", "tlsKeyFilePath"),
    *("tlsAllowInsecureConnection", "tlsHostnameVerificationEnable", "connectionTimeoutMs"),
)
CONNECTION: Sequence[Described] = (
    *_OF_CONNECTION,
    *(
        Described(ADMIN + name, "", "both", f"the same for calls of `admin.url`; the default is {CLIENT}{name}")
        for name in _OF_ADMIN
    ),
)
"""Options of the connection, for reading and for writing."""


class BadOption(ValueError):
    """An option that is unknown or missing, or has an invalid value."""


SPARKS_OWN = (
    *("path", "checkpointLocation"),
    *("provider", "location", "external", "is_managed_location", "owner", "comment", "collation"),  # of CREATE TABLE
)
"""Options that Spark itself passes to data sources."""

OF_KAFKA: Mapping[str, str] = {
    "kafka.bootstrap.servers": SERVICE_URL,
    "subscribe": "topic or topics",
    "subscribePattern": "topicsPattern",
    "assign": "topic (a partition is a topic too: orders-partition-0)",
    "startingTimestamp": "startingTime",
    "startingOffsetsByTimestamp": "startingTime",
    "endingTimestamp": "endingTime",
    "endingOffsetsByTimestamp": "endingTime",
    "startingOffsetsByTimestampStrategy": "startingTime (a time behind the last message is the end)",
    "maxOffsetsPerTrigger": "maxMessagesPerTrigger",
    "kafkaConsumer.pollTimeoutMs": "pollTimeoutMs",
    "includeHeaders": "nothing: the column __messageProperties is always there",
    "groupIdPrefix": "subscriptionPrefix",
    "kafka.group.id": "predefinedSubscription",
    "minOffsetsPerTrigger": "nothing: use a trigger with a longer interval",
    "maxTriggerDelay": "nothing: use a trigger with an interval",
    "fetchOffset.numRetries": "pulsar.client.operationTimeoutMs",
    "fetchOffset.retryIntervalMs": "pulsar.client.operationTimeoutMs",
    "kafka.security.protocol": "pulsar+ssl:// in service.url, or pulsar.client.authPluginClassName",
    "kafka.sasl.mechanism": "pulsar.client.authPluginClassName",
    "kafka.sasl.jaas.config": "pulsar.client.authParams",
    "kafka.ssl.truststore.location": "pulsar.client.tlsTrustCertsFilePath",
    "kafka.ssl.endpoint.identification.algorithm": "pulsar.client.tlsHostnameVerificationEnable",
}
"""Options of Spark's source for Kafka, and what takes their place here. Those with the same name are absent."""

_REPLACED = {name.lower(): name for name in INSTEAD}


def _replaced(name: str, instead: str) -> BadOption:
    return BadOption(f'option "{name}" is one of StreamNative\'s connector. In its place: {instead}')


def _plain(given: str) -> str:
    """Return the name of an option in lower case. Spark repeats the options of a table behind "option."."""
    return given.lower().removeprefix("option.")


class Options:
    """Options by name. Upper and lower case are the same."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._names = list(given)
        self._given = {key.lower(): str(value) for key, value in given.items()}

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise `BadOption` for an option that is not known, with the most similar name."""
        names = {each.lower(): each for each in (*known, *SPARKS_OWN, *NO_EFFECT)}
        of_kafka = {each.lower(): instead for each, instead in OF_KAFKA.items()}
        self._refuse_replaced()
        for given in self._names:
            if _plain(given) in names or _plain(given) in _REPLACED:
                continue
            if self._repeats_the_topic(given):
                continue
            if instead := of_kafka.get(given.lower()):
                raise BadOption(f'option "{given}" is one of Kafka\'s source: its counterpart is {instead}')
            similar = difflib.get_close_matches(given.lower(), names, 1)
            hint = f'did you mean "{names[similar[0]]}"?' if similar else "docs/pipeline-options.md lists all options"
            raise BadOption(f'unknown option "{given}": {hint}')

    def _repeats_the_topic(self, name: str) -> bool:
        """Return whether the option is `subscribe` of Kafka's source beside the same `topic` or `topics`."""
        return name.lower() == "subscribe" and self.text(name) in (self.text("topic"), self.text("topics"))

    def _refuse_replaced(self) -> None:
        """Raise `BadOption` for an option of StreamNative's connector that something else replaces here."""
        for given in self._names:
            name = _REPLACED.get(_plain(given))
            if name is not None and (self.text(given) or "").strip().lower() != INSTEAD[name].harmless:
                raise _replaced(name, INSTEAD[name].text)
            for prefix, instead in FAMILIES_INSTEAD.items():
                if _plain(given).startswith(prefix):
                    raise _replaced(given, instead)

    def refuse_elsewhere(self, names: Iterable[str], where: str) -> None:
        """Raise `BadOption` for an option that belongs to `where`. A name that ends with a dot is a prefix."""
        for name in names:
            is_prefix = name.endswith(".")
            for given in map(_plain, self._names):
                if given.startswith(name.lower()) if is_prefix else given == name.lower():
                    raise BadOption(f'option "{given if is_prefix else name}" is for {where}: remove it here')

    def for_admin(self) -> Options | None:
        """Return the options with those of `pulsar.admin.` for `pulsar.client.`, or None when there are none."""
        own = {CLIENT + name: value for name in _OF_ADMIN if (value := self.text(ADMIN + name)) is not None}
        return Options({**self._given, **{name.lower(): value for name, value in own.items()}}) if own else None

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the option, or `default`."""
        return self._given.get(name.lower(), default)

    def required(self, name: str) -> str:
        """Return the option. Raise `BadOption` when it is missing."""
        value = self.text(name)
        if not value:
            raise BadOption(f'.option("{name}", ...) is missing')
        return value

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """Return a whole number of at least `least`, or raise `BadOption`."""
        value = self.text(name)
        if value is None:
            return default
        value = value.strip()
        if not (value.isascii() and value.isdigit()) or int(value) < least:
            raise BadOption(f'option "{name}" must be a whole number of at least {least}, not {value!r}')
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is `true` or `false`, or raise `BadOption`."""
        value = self.text(name, str(default)) or ""
        if value.lower() not in ("true", "false"):
            raise BadOption(f'option "{name}" must be true or false, not {value!r}')
        return value.lower() == "true"

    def choice(self, name: str, among: Mapping[str, T], default: str) -> T:
        """Return the value of `among` that the option names, or raise `BadOption`."""
        value = self.text(name, default) or ""
        found = {key.lower(): each for key, each in among.items()}.get(value.lower())
        if found is None:
            raise BadOption(f'option "{name}" must be one of {", ".join(among)}, not {value!r}')
        return found


@dataclass(frozen=True)
class ConnectionOptions:
    """Service URL, authentication and TLS settings of a client.

    The workers get them with their tasks; `repr` shows no secret.
    """

    service_url: str
    admin_url: str | None = None
    auth_plugin: str = ""
    """A class of Java's client, or the end of its name: AuthenticationToken, AuthenticationBasic or AuthenticationTls.
    """
    auth_params: str = ""
    trust_certs: str | None = None
    allow_insecure: bool = False
    validate_hostname: bool = True
    connection_timeout: float = 10.0
    operation_timeout: float = 30.0
    certificate: str | None = None
    key: str | None = None
    listener: str | None = None
    max_redirects: int = 20
    keep_alive: float = 30.0
    first_backoff: float = 0.1
    longest_backoff: float = 60.0
    """The times are in seconds."""
    description: str = ""
    admin: ConnectionOptions | None = None
    """The connection of calls of `admin_url`, or None for this one."""

    @staticmethod
    def of(options: Options) -> ConnectionOptions:
        """Return the connection of these options.

        Raise `BadOption` when `service.url` is missing, and for an authentication that is unknown or incomplete.
        """
        made = ConnectionOptions._of(options)
        for_admin = options.for_admin()
        if for_admin is None:
            return made
        try:
            return replace(made, admin=ConnectionOptions._of(for_admin))
        except BadOption as error:
            raise BadOption(str(error).replace(CLIENT, ADMIN)) from None

    @staticmethod
    def _of(options: Options) -> ConnectionOptions:
        url = options.required(SERVICE_URL)
        has_tls = url.lower().startswith(("pulsar+ssl:", "https:"))
        if options.flag("pulsar.client.useTls", default=has_tls) != has_tls:
            raise BadOption(
                f'option "pulsar.client.useTls": the scheme of {SERVICE_URL} decides. Remove the option, and write '
                f"{'pulsar://host:6650 for no TLS' if has_tls else 'pulsar+ssl://host:6651 for TLS'}"
            )
        made = ConnectionOptions(
            url,
            options.text(ADMIN_URL) or None,
            options.text("pulsar.client.authPluginClassName", "") or "",
            options.text("pulsar.client.authParams", "") or "",
            options.text("pulsar.client.tlsTrustCertsFilePath"),
            options.flag("pulsar.client.tlsAllowInsecureConnection", default=False),
            options.flag("pulsar.client.tlsHostnameVerificationEnable", default=True),
            options.number("pulsar.client.connectionTimeoutMs", 10_000, least=1) / 1000,
            options.number("pulsar.client.operationTimeoutMs", 30_000, least=1) / 1000,
            options.text("pulsar.client.tlsCertificateFilePath") or None,
            options.text("pulsar.client.tlsKeyFilePath") or None,
            options.text("pulsar.client.listenerName") or None,
            options.number("pulsar.client.maxLookupRedirects", 20),
            options.number("pulsar.client.keepAliveIntervalSeconds", 30),
            options.number("pulsar.client.initialBackoffIntervalNanos", 100_000_000, least=1) / 1e9,
            options.number("pulsar.client.maxBackoffIntervalNanos", 60_000_000_000, least=1) / 1e9,
            options.text("pulsar.client.description", "") or "",
        )
        made.authentication()
        return made

    def authentication(self) -> Authentication | None:
        """Return the client's authentication, or None. Raise `BadOption` for invalid parameters."""
        if not self.auth_plugin:
            return None
        from pulsarium.client.errors import InvalidConfiguration

        try:
            return self._authentication()
        except InvalidConfiguration as error:  # such as an empty token, or a colon in a user's name
            raise BadOption(f"pulsar.client.authParams: {error}") from None

    def _authentication(self) -> Authentication:
        from pulsarium.client import AuthenticationBasic, AuthenticationTLS

        name, params = self.auth_plugin.rpartition(".")[2], self.auth_params
        if name == "AuthenticationToken":
            return _token(params)
        pairs = _pairs(params)
        if name == "AuthenticationBasic" and {"userId", "password"} <= pairs.keys():
            return AuthenticationBasic(pairs["userId"], pairs["password"])
        if name == "AuthenticationTls" and {"tlsCertFile", "tlsKeyFile"} <= pairs.keys():
            return AuthenticationTLS(pairs["tlsCertFile"], pairs["tlsKeyFile"])
        if name == "AuthenticationKeyStoreTls":
            raise BadOption(f"pulsar.client.authPluginClassName {name}: {KEY_STORE}")
        raise BadOption(
            "pulsar.client.authPluginClassName must be AuthenticationToken (authParams token:... or file:///...), "
            "AuthenticationBasic (userId and password) or AuthenticationTls (tlsCertFile and tlsKeyFile), as JSON or "
            f"as key:value,key:value; not {self.auth_plugin}"
        )

    def __repr__(self) -> str:
        return f"<Connection to {self.service_url}>"


def _token(params: str) -> AuthenticationToken:
    from pulsarium.client import AuthenticationToken

    if params.startswith("file:"):
        path = params.removeprefix("file:").removeprefix("//")

        def read() -> str:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()

        return AuthenticationToken(read)
    if params.startswith("{"):
        return AuthenticationToken(_pairs(params).get("token", ""))
    return AuthenticationToken(params.removeprefix("token:"))


def _pairs(params: str) -> dict[str, str]:
    """Return the pairs of JSON, or of `key:value,key:value` as Java's client takes them."""
    if params.startswith("{"):
        try:
            return {str(key): str(value) for key, value in json.loads(params).items()}
        except ValueError:
            raise BadOption("pulsar.client.authParams is not a JSON object") from None
    return {key.strip(): value for key, _, value in (each.partition(":") for each in params.split(",")) if value}
