"""Read credentials and trusted certificates from options and a client.conf, for every protocol."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click


@dataclass
class Caller:
    """The options of one run. An option that is None has the value in client.conf."""

    token: str | None = field(default=None, repr=False)
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    tls_trust_cert_path: str | None = None
    tls_allow_insecure: bool | None = None
    tls_enable_hostname_verification: bool | None = None
    config: Path | None = None
    wait: float = 0.0

    @cached_property
    def settings(self) -> dict[str, str]:
        """Return the settings of the client.conf. Raise click.UsageError if the file cannot be read."""
        if self.config is None:
            return {}
        from pulsarium.broker.config.file import PropertiesError, parse

        try:
            text = self.config.read_text(encoding="latin-1")
        except OSError as error:
            raise click.UsageError(f"--config: {self.config}: {error.strerror}") from None
        if "\0" in text:
            raise click.UsageError(f"--config: {self.config} is a binary file; a client.conf is text")
        try:
            return {setting.key: setting.value for setting in parse(text)}
        except PropertiesError as error:
            raise click.UsageError(f"--config: {self.config}:{error.line}: {error}") from None

    @property
    def proof(self) -> tuple[str, str]:
        """Return `token`, `basic`, `tls` or "", and its parameters. Raise click.UsageError for wrong options."""
        if self.token:
            return kind_of("token", self.token)
        if self.auth_plugin or self.auth_params:
            return kind_of(self.auth_plugin, self.auth_params)
        return kind_of(self.settings.get("authPlugin"), self.settings.get("authParams"))

    @property
    def trusted(self) -> str | None:
        """Return the file of the trusted authorities, or None for those of the system."""
        return self.tls_trust_cert_path or self.settings.get("tlsTrustCertsFilePath") or None

    @property
    def trusts_any(self) -> bool:
        return self._on(self.tls_allow_insecure, "tlsAllowInsecureConnection")

    @property
    def verifies_hostname(self) -> bool:
        return self._on(self.tls_enable_hostname_verification, "tlsEnableHostnameVerification")

    def _on(self, asked: bool | None, key: str) -> bool:
        return asked if asked is not None else self.settings.get(key, "").lower() == "true"

    def tls(self, certificate: tuple[str, str] | None) -> ssl.SSLContext:
        """Return a TLS context, with the client's own certificate if any.

        Raise click.UsageError, with the name of the file, when a file cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=self.trusted)
        except (OSError, ssl.SSLError) as error:
            raise click.UsageError(f"--tls-trust-cert-path: {self.trusted}: {_words(error)}") from None
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Pulsar's tools accept such certificates
        context.check_hostname = self.verifies_hostname
        if self.trusts_any:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            try:
                context.load_cert_chain(*certificate)
            except (OSError, ssl.SSLError) as error:
                raise click.UsageError(f"--auth-params: {', '.join(certificate)}: {_words(error)}") from None
        return context


def _words(error: OSError) -> str:
    return error.strerror or str(error)


_PREFIX = "org.apache.pulsar.client.impl.auth.Authentication"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a client: `headers` for each call, `certificate` (certificate file, key file) for mutual TLS."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: tuple[str, str] | None = None


def credentials(plugin: str | None, params: str | None) -> Credentials:
    """Return the credentials for a plugin, given as Pulsar's class name or as `token`, `basic` or `tls`.

    Raise click.UsageError, which never shows a secret, for wrong parameters.
    """
    kind, params = kind_of(plugin, params)
    if kind == "token":
        return Credentials({"Authorization": f"Bearer {token(params)}"})
    if kind == "basic":
        pair = ":".join(basic(params)).encode()
        return Credentials({"Authorization": f"Basic {base64.b64encode(pair).decode()}"})
    return Credentials(certificate=certificate(params)) if kind == "tls" else Credentials()


def kind_of(plugin: str | None, params: str | None) -> tuple[str, str]:
    """Return `token`, `basic`, `tls` or "" for none, and its parameters. Raise as `credentials` does."""
    kind = (plugin or "").removeprefix(_PREFIX).lower()
    if not kind and params:
        raise click.UsageError("--auth-params needs --auth-plugin: token, basic or tls")
    if kind in ("", "disabled"):
        return "", ""
    if kind not in ("token", "basic", "tls"):
        raise click.UsageError(f"--auth-plugin {plugin} is not supported; use token, basic or tls")
    if not params:
        raise click.UsageError(f"--auth-plugin {plugin} needs --auth-params")
    return kind, params


def basic(params: str) -> tuple[str, str]:
    """Return user and password."""
    given = _parameters(params, "userId", "password")
    return given["userId"], given["password"]


def certificate(params: str) -> tuple[str, str]:
    """Return the files of the certificate and of the private key."""
    given = _parameters(params, "tlsCertFile", "tlsKeyFile")
    return given["tlsCertFile"], given["tlsKeyFile"]


def token(params: str) -> str:
    """Return the token from `token:TEXT`, `file:///path`, `{"token": TEXT}` or the token itself."""
    if params.startswith("token:"):
        return params.removeprefix("token:").strip()
    if params.startswith("file:"):
        path = unquote(urlsplit(params).path)
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise click.UsageError(f"The token file {path} cannot be read: {error.strerror}") from None
    if params.lstrip().startswith("{"):
        return _parameters(params, "token")["token"]
    return params.strip()


def _parameters(params: str, *names: str) -> dict[str, str]:
    """Return the named values of JSON, or of `name:value,name:value`."""
    given: Any
    if params.lstrip().startswith("{"):
        try:
            given = json.loads(params)
        except ValueError:
            raise click.UsageError("--auth-params: the text is not JSON") from None
    else:
        given = dict(pair.split(":", 1) for pair in params.split(",") if ":" in pair)
    if missing := [name for name in names if not isinstance(given.get(name), str)]:
        raise click.UsageError(f"--auth-params lacks {' and '.join(missing)}")
    return {name: given[name].removeprefix("file://") for name in names}
