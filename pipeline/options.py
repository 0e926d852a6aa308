"""Options of the data source, named as in Pulsar's own Spark connector where that has them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:  # Spark starts processes that need no client, and whose imports a query waits for
    from pulsarium.client import Authentication, AuthenticationToken

T = TypeVar("T")

SERVICE_URL, ADMIN_URL = "service.url", "admin.url"


class Described(NamedTuple):
    """Documentation of one option."""

    name: str
    default: str
    """"" without a default."""
    used_by: str
    """"batch", "stream" or "both"."""
    meaning: str


CONNECTION: Sequence[Described] = (
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
)
"""Options of the connection, for reading and for writing."""


class BadOption(ValueError):
    """An option that is unknown or missing, or has an invalid value."""


SPARKS_OWN = (
    *("path", "checkpointLocation"),
    *("provider", "location", "external", "is_managed_location", "owner", "comment", "collation"),  # of CREATE TABLE
)
"""Options that Spark itself passes to data sources. It also repeats the options of a table behind "option."."""

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


class Options:
    """Options by name. Upper and lower case are the same."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._names = list(given)
        self._given = {key.lower(): str(value) for key, value in given.items()}

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise `BadOption` for an option that is not known, with the most similar name."""
        names = {each.lower(): each for each in (*known, *SPARKS_OWN)}
        of_kafka = {each.lower(): instead for each, instead in OF_KAFKA.items()}
        for given in self._names:
            if given.lower().removeprefix("option.") in names:
                continue
            if instead := of_kafka.get(given.lower()):
                raise BadOption(f'option "{given}" is one of Kafka\'s source: its counterpart is {instead}')
            similar = difflib.get_close_matches(given.lower(), names, 1)
            hint = f'did you mean "{names[similar[0]]}"?' if similar else "docs/pipeline-options.md lists all options"
            raise BadOption(f'unknown option "{given}": {hint}')

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

    @staticmethod
    def of(options: Options) -> ConnectionOptions:
        """Return the connection of these options.

        Raise `BadOption` when `service.url` is missing, and for an authentication that is unknown or incomplete.
        """
        made = ConnectionOptions(
            options.required(SERVICE_URL),
            options.text(ADMIN_URL) or None,
            options.text("pulsar.client.authPluginClassName", "") or "",
            options.text("pulsar.client.authParams", "") or "",
            options.text("pulsar.client.tlsTrustCertsFilePath"),
            options.flag("pulsar.client.tlsAllowInsecureConnection", default=False),
            options.flag("pulsar.client.tlsHostnameVerificationEnable", default=True),
            options.number("pulsar.client.connectionTimeoutMs", 10_000, least=1) / 1000,
            options.number("pulsar.client.operationTimeoutMs", 30_000, least=1) / 1000,
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
