"""What the options of `pulsarium admin` itself mean: where the broker is, who calls, and how to print."""

import os
import ssl
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click

from pulsarium.proto.rest.exchange import places

from .api import Api
from .credentials import Credentials, credentials

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass
class Session:
    """The options of one run; the broker is first called by the command."""

    admin_url: str | None = None
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    request_timeout: int = 300
    tls_allow_insecure: bool | None = None
    tls_trust_cert_path: str | None = None
    tls_enable_hostname_verification: bool | None = None
    config: Path | None = None
    output: str = "auto"

    @cached_property
    def api(self) -> Api:
        settings = _client_conf(self.config)
        url = self.admin_url or settings.get("webServiceUrl") or DEFAULT_URL
        given = self._credentials(settings)
        urls = places(url)
        tls = self._tls(settings, given) if url.startswith("https:") else None
        return Api(urls, given.headers, tls, self.request_timeout)

    def _credentials(self, settings: dict[str, str]) -> Credentials:
        if self.token:
            return credentials("token", self.token)
        if self.auth_plugin or self.auth_params:
            return credentials(self.auth_plugin, self.auth_params)
        return credentials(settings.get("authPlugin"), settings.get("authParams"))

    def _tls(self, settings: dict[str, str], given: Credentials) -> ssl.SSLContext:
        def on(value: bool | None, key: str) -> bool:
            return value if value is not None else settings.get(key, "").lower() == "true"

        trusted = self.tls_trust_cert_path or settings.get("tlsTrustCertsFilePath") or None
        try:
            context = ssl.create_default_context(cafile=trusted)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13; Pulsar's own tools take such certificates
            context.check_hostname = on(self.tls_enable_hostname_verification, "tlsEnableHostnameVerification")
            if on(self.tls_allow_insecure, "tlsAllowInsecureConnection"):
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if given.certificate is not None:
                context.load_cert_chain(*given.certificate)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(filter(None, (trusted, *(given.certificate or ()))))
            raise click.UsageError(f"TLS: {files}: {error.strerror or error}") from None
        return context


def _client_conf(path: Path | None) -> dict[str, str]:
    """The settings of a client.conf; PULSAR_CLIENT_CONF names one as it does for pulsar-admin."""
    name = path or os.environ.get("PULSAR_CLIENT_CONF")
    if not name:
        return {}
    from pulsarium.broker.config.properties import PropertiesError, parse

    try:
        return {setting.key: setting.value for setting in parse(Path(name).read_text())}
    except OSError as error:
        raise click.UsageError(f"--config: {name}: {error.strerror}") from None
    except PropertiesError as error:
        raise click.UsageError(f"--config: {name}:{error.line}: {error}") from None
