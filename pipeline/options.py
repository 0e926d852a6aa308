"""The options of the data source, named as those of Pulsar's own Spark connector where it has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pulsarium.client import Authentication, AuthenticationBasic, AuthenticationTLS, AuthenticationToken
from pulsarium.client.errors import InvalidConfiguration

T = TypeVar("T")

SERVICE_URL, ADMIN_URL = "service.url", "admin.url"


class Described(NamedTuple):
    """One option, for people."""

    name: str
    default: str
    """"": there is none."""
    used_by: str
    """batch, stream or both."""
    meaning: str


CONNECTION: Sequence[Described] = (
    Described(SERVICE_URL, "", "both", "where the brokers are: pulsar://host:6650, or pulsar+ssl://host:6651; needed"),
    Described(
        "pulsar.client.authPluginClassName",
        "",
        "both",
        "who asks: AuthenticationToken, AuthenticationBasic or AuthenticationTls, with or without Java's package",
    ),
    Described(
        "pulsar.client.authParams",
        "",
        "both",
        "token:... or file:///path of a token; userId and password, or tlsCertFile and tlsKeyFile, as JSON or as "
        "key:value,key:value. Files are read where tasks run",
    ),
    Described(
        "pulsar.client.tlsTrustCertsFilePath",
        "",
        "both",
        "PEM file of the authorities to believe; the system's without",
    ),
    Described("pulsar.client.tlsAllowInsecureConnection", "false", "both", "believe any certificate"),
    Described("pulsar.client.tlsHostnameVerificationEnable", "true", "both", "the certificate must be the host's"),
    Described("pulsar.client.connectionTimeoutMs", "10000", "both", "until a connection has to be there"),
    Described("pulsar.client.operationTimeoutMs", "30000", "both", "how long a broker may take for an answer"),
)
"""Of what all reading and writing takes."""


class BadOption(ValueError):
    """An option that is missing, or that cannot be what it says."""


class Options:
    """Options by name, whatever the case of their letters."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {key.lower(): str(value) for key, value in given.items()}

    def text(self, name: str, default: str | None = None) -> str | None:
        """The option, or `default`."""
        return self._given.get(name.lower(), default)

    def required(self, name: str) -> str:
        """The option; BadOption when it is not there."""
        value = self.text(name)
        if not value:
            raise BadOption(f'.option("{name}", ...) is missing')
        return value

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """A whole number of at least `least`."""
        value = self.text(name)
        if value is None:
            return default
        value = value.strip()
        if not (value.isascii() and value.isdigit()) or int(value) < least:
            raise BadOption(f'option "{name}" is a whole number from {least} on, not {value!r}')
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """`true` or `false`."""
        value = self.text(name, str(default)) or ""
        if value.lower() not in ("true", "false"):
            raise BadOption(f'option "{name}" is true or false, not {value!r}')
        return value.lower() == "true"

    def choice(self, name: str, among: Mapping[str, T], default: str) -> T:
        """One of few words."""
        value = self.text(name, default) or ""
        found = {key.lower(): each for key, each in among.items()}.get(value.lower())
        if found is None:
            raise BadOption(f'option "{name}" is one of {", ".join(among)}, not {value!r}')
        return found


@dataclass(frozen=True)
class Connection:
    """Where the brokers are and who asks; goes to the workers with their tasks, and shows no secret."""

    service_url: str
    admin_url: str | None = None
    auth_plugin: str = ""
    """A class of Java's client, or the end of its name: AuthenticationToken, AuthenticationBasic, AuthenticationTls."""
    auth_params: str = ""
    trust_certs: str | None = None
    allow_insecure: bool = False
    validate_hostname: bool = True
    connection_timeout: float = 10.0
    operation_timeout: float = 30.0

    @staticmethod
    def of(options: Options) -> Connection:
        """BadOption for a missing `service.url`, and for an authentication that is not known."""
        made = Connection(
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
        """What the client proves its role with; BadOption for what cannot be."""
        try:
            return self._authentication()
        except InvalidConfiguration as error:  # an empty token, a colon in a user's name
            raise BadOption(f"pulsar.client.authParams: {error}") from None

    def _authentication(self) -> Authentication | None:
        name, params = self.auth_plugin.rpartition(".")[2], self.auth_params
        if not name:
            return None
        if name == "AuthenticationToken":
            return _token(params)
        pairs = _pairs(params)
        if name == "AuthenticationBasic" and {"userId", "password"} <= pairs.keys():
            return AuthenticationBasic(pairs["userId"], pairs["password"])
        if name == "AuthenticationTls" and {"tlsCertFile", "tlsKeyFile"} <= pairs.keys():
            return AuthenticationTLS(pairs["tlsCertFile"], pairs["tlsKeyFile"])
        raise BadOption(
            "pulsar.client.authPluginClassName is AuthenticationToken (authParams token:... or file:///...), "
            "AuthenticationBasic (userId and password) or AuthenticationTls (tlsCertFile and tlsKeyFile), as JSON or "
            f"as key:value,key:value; not {self.auth_plugin}"
        )

    def __repr__(self) -> str:
        return f"<Connection to {self.service_url}>"


def _token(params: str) -> AuthenticationToken:
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
    """JSON, or `key:value,key:value` as Java's client takes it."""
    if params.startswith("{"):
        try:
            return {str(key): str(value) for key, value in json.loads(params).items()}
        except ValueError:
            raise BadOption("pulsar.client.authParams is no JSON") from None
    return {key.strip(): value for key, _, value in (each.partition(":") for each in params.split(",")) if value}
