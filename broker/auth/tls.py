"""Make the TLS context of the binary port and of HTTPS, and renew it when its files change."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from pulsarium.broker.auth.identity import Certificate
from pulsarium.broker.auth.sources import cannot_be_read
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import PartLog

log = PartLog("tls")

FILES: Final = ("tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath")


class ShowsCertificate(Protocol):
    """A connection over TLS, with ssl.SSLObject's getpeercert."""

    def getpeercert(self) -> Certificate | None: ...


class TlsContext:
    """The TLS context for new connections.

    The constructor raises `ConfigError` for files that cannot be used. Later errors are logged, and the last good
    context stays.
    """

    def __init__(self, config: Config, monotonic: Callable[[], float]) -> None:
        self._config = config
        self._monotonic = monotonic
        self._interval = config.tlsCertRefreshCheckDurationSec
        self._times = self._file_times()
        self._context = context_of(config)
        self._looked_at = monotonic()

    def current(self) -> ssl.SSLContext:
        """Return the context. Look for changed files first, every tlsCertRefreshCheckDurationSec seconds."""
        now = self._monotonic()
        if self._interval and now - self._looked_at >= self._interval:
            self._looked_at = now
            times = self._file_times()
            if times != self._times:
                self._renew(times)
        return self._context

    def _renew(self, times: list[int | None]) -> None:
        try:
            self._context = context_of(self._config)
        except ConfigError as error:  # half written, or wrong: the last good context stays
            log.warning("the changed TLS files cannot be used; the broker keeps the old ones", reason=error)
        else:
            self._times = times
            log.info("the changed TLS files are in use")

    def _file_times(self) -> list[int | None]:
        return [_changed_at(getattr(self._config, key)) for key in FILES]


def context_of(config: Config) -> ssl.SSLContext:
    """Return a context by the tls... keys. Raise `ConfigError` when its files cannot be used."""
    ports = ("brokerServicePortTls", "webServicePortTls")
    port = next((key for key in ports if getattr(config, key) is not None), ports[0])
    for key in FILES[:2]:
        if not getattr(config, key):
            raise ConfigError("", port, f"needs {key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if config.tlsProtocols:
        versions = sorted(ssl.TLSVersion[name.replace(".", "_")] for name in config.tlsProtocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
    _load_certificate(context, str(config.tlsCertificateFilePath), str(config.tlsKeyFilePath))
    context.verify_mode = _verify_mode(config)
    if config.tlsTrustCertsFilePath:
        try:
            context.load_verify_locations(config.tlsTrustCertsFilePath)
        except OSError as error:
            raise ConfigError("", "tlsTrustCertsFilePath", _why(error, config.tlsTrustCertsFilePath)) from None
    elif config.tlsRequireTrustedClientCertOnConnect:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context


def _verify_mode(config: Config) -> ssl.VerifyMode:
    """Return whether clients must, may or cannot show a certificate. A shown certificate must be trusted."""
    if config.tlsRequireTrustedClientCertOnConnect:
        return ssl.CERT_REQUIRED
    return ssl.CERT_OPTIONAL if config.tlsTrustCertsFilePath else ssl.CERT_NONE


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    def no_password() -> str:
        raise ConfigError("", "tlsKeyFilePath", f"{key} is encrypted; decrypt it first (openssl pkcs8 -nocrypt)")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except OSError as error:
        if not Path(certificate).is_file() or (
            isinstance(error, ssl.SSLError) and not _holds(certificate, "CERTIFICATE")
        ):
            raise ConfigError("", "tlsCertificateFilePath", _why(error, certificate)) from None
        raise ConfigError("", "tlsKeyFilePath", _why(error, key)) from None


def _holds(path: str, what: str) -> bool:
    try:
        return f"-----BEGIN {what}-----" in Path(path).read_text("latin-1")
    except OSError:
        return False


def _why(error: OSError, path: str) -> str:
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "not understood").replace("_", " ").lower()
        return f"{path} cannot be used: {reason}"
    return cannot_be_read(path, error)


def _changed_at(path: str | None) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns if path else None
    except OSError:
        return None


def certificate_of(tls: ShowsCertificate) -> Certificate | None:
    """Return the client's verified certificate, or None."""
    return tls.getpeercert() or None
