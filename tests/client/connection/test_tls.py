"""TLS over streams in memory: trust, client certificates, and errors."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.tls import TLSAttribute, TLSStream
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pulsarium.client import AuthenticationTLS, connect, errors
from pulsarium.client.connection.tls import Tls
from pulsarium.client.opening import open_client
from tests.broker.auth.secured import Authority, Files
from tests.client.both import on_both
from tests.client.peer import Peer, Peers, Type


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> Files:
    return authority.sign("me")


@asynccontextmanager
async def served(
    authority: Authority, files: Files, tls: Tls, host: str = "localhost", wants_certificate: bool = False
) -> AsyncIterator[dict[str, Any]]:
    """Run a TLS broker with a certificate for localhost and a client that counts partitions. Yield the outcome."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.path)
    context.load_cert_chain(*files)
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
    peers = Peers(**{f"tls_{name}": value for name, value in asdict(tls).items()})
    outcome: dict[str, Any] = {}

    async def serve() -> None:
        peer = await peers.next()
        try:
            stream = await TLSStream.wrap(peer.stream, server_side=True, ssl_context=context, standard_compatible=False)
        except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream):
            await peer.close()
            return
        secured = Peer(stream)
        outcome["client"] = stream.extra(TLSAttribute.peer_certificate, None)
        await secured.take_in()
        asked = await secured.expect(Type.PARTITIONED_METADATA)
        await secured.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=asked.request_id, partitions=3)
        with pytest.raises(anyio.EndOfStream):
            await secured.next()
        await peer.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        async with open_client(f"pulsar+ssl://{host}", peers.settings) as client:
            try:
                outcome["partitions"] = await client._core.brokers.partitions("t")
            except errors.PulsarError as error:
                outcome["error"] = error
            yield outcome
    peers.close()


@on_both
async def test_a_broker_that_is_believed(authority: Authority, files: Files) -> None:
    async with served(authority, files, Tls(trust_certs_file_path=str(authority.path))) as outcome:
        assert outcome == {"partitions": 3, "client": None}


@on_both
async def test_a_broker_that_is_not(authority: Authority, files: Files) -> None:
    async with served(authority, files, Tls()) as outcome:
        assert isinstance(outcome["error"], errors.AuthenticationError)
        assert str(outcome["error"]).startswith("localhost:6651: the certificate is not trusted: ")
        assert "tls_trust_certs_file_path" in str(outcome["error"])


def test_certificates_as_other_clients_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 and later want extensions that many private authorities do not write."""
    made = ssl.create_default_context()
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **named: made)
    assert not Tls().context().verify_flags & ssl.VERIFY_X509_STRICT


@on_both
async def test_another_hosts_certificate_is_refused_unless_any_host_will_do(authority: Authority, files: Files) -> None:
    trusting = {"trust_certs_file_path": str(authority.path)}
    async with served(authority, files, Tls(**trusting), host="a") as outcome:  # type: ignore[arg-type]
        assert isinstance(outcome["error"], errors.AuthenticationError)
        assert "Hostname mismatch" in str(outcome["error"])
    tls = Tls(validate_hostname=False, **trusting)  # type: ignore[arg-type]
    async with served(authority, files, tls, host="a") as outcome:
        assert outcome["partitions"] == 3


@on_both
async def test_any_certificate_where_that_is_wanted(authority: Authority, files: Files) -> None:
    async with served(authority, files, Tls(allow_insecure_connection=True), host="a") as outcome:
        assert outcome["partitions"] == 3


@on_both
async def test_the_clients_own_certificate(authority: Authority, files: Files) -> None:
    certificate, key = map(str, files)
    tls = Tls(trust_certs_file_path=str(authority.path), certificate_file_path=certificate, private_key_file_path=key)
    async with served(authority, files, tls, wants_certificate=True) as outcome:
        assert outcome["partitions"] == 3
        assert outcome["client"]["subject"] == ((("commonName", "me"),),)


@on_both
async def test_a_broker_that_misses_a_certificate(authority: Authority, files: Files) -> None:
    """TLS 1.3 reports the missing certificate only after the handshake, when the client reads."""
    tls = Tls(trust_certs_file_path=str(authority.path))
    async with served(authority, files, tls, wants_certificate=True) as outcome:
        assert isinstance(outcome["error"], (errors.AuthenticationError, errors.ConnectError))


@on_both
async def test_a_peer_that_closes_in_the_handshake() -> None:
    peers = Peers()
    async with anyio.create_task_group() as tasks, open_client("pulsar+ssl://a", peers.settings) as client:

        async def serve() -> None:
            await (await peers.next()).close()

        tasks.start_soon(serve)
        with pytest.raises(errors.ConnectError, match="closed during the TLS handshake"):
            await client._core.brokers.partitions("t")
    peers.close()


@pytest.mark.parametrize(
    "options",
    [
        {"tls_trust_certs_file_path": "nowhere.pem"},
        {"tls_certificate_file_path": "nowhere.pem", "tls_private_key_file_path": "nowhere.pem"},
        {"tls_certificate_file_path": "alone.pem"},
        {"authentication": AuthenticationTLS("nowhere.pem", "nowhere.pem")},
    ],
    ids=["trusted", "own", "without its key", "authentication"],
)
@on_both
async def test_unreadable_certificates_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidConfiguration):
        async with connect("pulsar+ssl://a", **options):
            pass


def test_a_key_with_a_password_is_not_asked_for(files: Files, tmp_path: Path) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"p")))
    with pytest.raises(errors.InvalidConfiguration, match="password"):
        Tls(certificate_file_path=str(files.certificate), private_key_file_path=str(locked)).context()
