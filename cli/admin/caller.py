"""Read who calls and whom to trust from options and a client.conf, for HTTP and for the binary protocol."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click

from pulsarium.cli.admin.credentials import kind_of


@dataclass
class Caller:
    """Hold the options of one run; None: whatever a client.conf says."""

    token: str | None = field(default=None, repr=False)
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    tls_trust_cert_path: str | None = None
    tls_allow_insecure: bool | None = None
    tls_enable_hostname_verification: bool | None = None
    config: Path | None = None

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings of the client.conf. Raises click.UsageError if the file cannot be read."""
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
        """Return how the role is proved (`token`, `basic`, `tls` or ""), with parameters. Raises click.UsageError."""
        if self.token:
            return kind_of("token", self.token)
        if self.auth_plugin or self.auth_params:
            return kind_of(self.auth_plugin, self.auth_params)
        return kind_of(self.settings.get("authPlugin"), self.settings.get("authParams"))

    @property
    def trusted(self) -> str | None:
        """The file of the authorities to trust; None: those of the system."""
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
        """TLS with a certificate of the caller's own, or without. Raises click.UsageError that names the file."""
        try:
            context = ssl.create_default_context(cafile=self.trusted)
        except (OSError, ssl.SSLError) as error:
            raise click.UsageError(f"--tls-trust-cert-path: {self.trusted}: {_words(error)}") from None
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13; Pulsar's own tools take such certificates
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
