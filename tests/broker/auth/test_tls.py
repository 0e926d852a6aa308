"""The settings of TLS, and files that change."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.auth.tls import TlsContext, context_of
from pulsarium.broker.config import Config, ConfigError
from tests.broker.auth.secured import Authority, Files


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def files(authority: Authority) -> Files:
    return authority.sign("server")


def keys_of(files: Files, **others: Any) -> Config:
    keys = {"tlsCertificateFilePath": str(files.certificate), "tlsKeyFilePath": str(files.key), **others}
    return Config(brokerServicePortTls=0, **keys)


def test_clients_show_certificates_as_the_settings_say(files: Files, authority: Authority) -> None:
    trusted = {"tlsTrustCertsFilePath": str(authority.path)}
    assert context_of(keys_of(files)).verify_mode == ssl.CERT_NONE
    assert context_of(keys_of(files, **trusted)).verify_mode == ssl.CERT_OPTIONAL
    required = keys_of(files, tlsRequireTrustedClientCertOnConnect=True, **trusted)
    assert context_of(required).verify_mode == ssl.CERT_REQUIRED
    assert context_of(keys_of(files, tlsRequireTrustedClientCertOnConnect=True)).verify_mode == ssl.CERT_REQUIRED


def test_tls_versions_are_those_of_the_settings(files: Files) -> None:
    assert context_of(keys_of(files)).minimum_version <= ssl.TLSVersion.TLSv1_2
    context = context_of(keys_of(files, tlsProtocols=frozenset({"TLSv1.3"})))
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tlsCertificateFilePath": None}, "brokerServicePortTls: needs tlsCertificateFilePath"),
        ({"tlsKeyFilePath": None}, "brokerServicePortTls: needs tlsKeyFilePath"),
        ({"tlsCertificateFilePath": "/no/c"}, "tlsCertificateFilePath: /no/c cannot be read: No such file"),
        ({"tlsKeyFilePath": "/no/k"}, "tlsKeyFilePath: /no/k cannot be read: No such file"),
        ({"tlsTrustCertsFilePath": "/no/t"}, "tlsTrustCertsFilePath: /no/t cannot be read: No such file"),
    ],
)
def test_tls_files_that_are_not_there_are_refused(keys: dict[str, Any], message: str, files: Files) -> None:
    with pytest.raises(ConfigError) as caught:
        context_of(keys_of(files, **keys))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("key", ["tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath"])
def test_tls_files_that_hold_something_else_are_refused(key: str, files: Files, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("hush")
    with pytest.raises(ConfigError) as caught:
        context_of(keys_of(files, **{key: str(junk)}))
    assert str(caught.value).startswith(f"{key}: {junk} cannot be used: ")
    assert "hush" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(files: Files, authority: Authority) -> None:
    with pytest.raises(ConfigError, match=r"^tlsKeyFilePath: .*other.key cannot be used: key values mismatch"):
        context_of(keys_of(Files(files.certificate, authority.sign("other").key)))


def test_changed_files_are_taken_at_the_next_look(
    files: Files, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    context = TlsContext(keys_of(files, tlsCertRefreshCheckDurationSec=10), lambda: now)
    first = context.current()
    for path in files:
        path.write_text("half written")
        os.utime(path, ns=(1, 1))
    now = 9.0
    assert context.current() is first
    now = 10.0
    assert context.current() is first  # the last good context stays
    assert "the changed TLS files cannot be used" in caplog.text
    authority.sign("server")
    now = 20.0
    second = context.current()
    assert second is not first
    now = 30.0
    assert context.current() is second


def test_files_are_not_looked_at_when_the_check_is_off(files: Files) -> None:
    now = 0.0
    context = TlsContext(keys_of(files, tlsCertRefreshCheckDurationSec=0), lambda: now)
    first = context.current()
    os.utime(files.key, ns=(1, 1))
    now = 1e9
    assert context.current() is first
