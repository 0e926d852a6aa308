"""Recognize another protocol at the broker's port, and name the URL to try instead."""

from __future__ import annotations

import ssl

from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.tcp import UnknownHost
from pulsarium.client.errors import AuthenticationError, ConnectError, PulsarError, WrongProtocol

_TLS = (b"\x15\x03", b"\x16\x03")  # beginnings of TLS records: alert and handshake
_NO_TLS = {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}
_OTHER_HOST = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH


def answered(address: BrokerAddress, first: bytes, error: ConnectError) -> ConnectError:
    """Return the error for a broker that sent these first bytes in place of CONNECTED."""
    if first.startswith(b"HTTP"):
        other = BrokerAddress(address.host, 6651 if address.tls else 6650, address.tls)
        return WrongProtocol(
            f"{address}: HTTP answers there, as at the port of the admin API; the port of Pulsar's clients is another "
            f"one, by default {other.url}"
        )
    if first.startswith(_TLS):
        return WrongProtocol(f"{address}: that port speaks TLS; connect to {address.other.url}")
    if first:
        return ConnectError(f"{address}: {error}")
    remedy = "" if address.tls else f"; if it is a port for TLS, connect to {address.other.url}"
    return ConnectError(f"{address}: closed before it answered{remedy}")


def in_handshake(place: str, other: str, error: Exception) -> PulsarError:
    """Return the error for a failed TLS handshake. `other` is the URL without TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        found = error.verify_message.rstrip(".")
        if error.verify_code in _OTHER_HOST:
            return AuthenticationError(
                f"{place}: {found}; connect by a name that the certificate has, or with tls_validate_hostname=False"
            )
        return AuthenticationError(
            f"{place}: the certificate is not trusted: {found}; give its authority's file as tls_trust_certs_file_path"
        )
    if isinstance(error, ssl.SSLError):
        if error.reason in _NO_TLS:
            return WrongProtocol(f"{place}: that port does not speak TLS; connect to {other}, or to a port for TLS")
        return AuthenticationError(f"{place}: no TLS: {error}")
    return ConnectError(f"{place}: closed during the TLS handshake; if it is a port without TLS, connect to {other}")


def unreachable(place: str, error: Exception) -> ConnectError:
    """Return the error for a connection that could not be made."""
    if isinstance(error, ConnectionRefusedError):
        return ConnectError(f"{place}: connection refused")
    if isinstance(error, UnknownHost):
        return ConnectError(f"{place}: there is no such host ({error.strerror})")
    return ConnectError(f"{place}: {str(error) or type(error).__name__}")


def over_http(origin: str, error: BaseException) -> PulsarError:
    """Return the error for a request to `http://...` or `https://...` without an answer.

    Libraries for HTTP hide the reason among the causes of their own exception.
    """
    other = origin.replace("https:", "http:") if origin.startswith("https:") else origin.replace("http:", "https:")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return in_handshake(origin, other, cause)
        if isinstance(cause, (ConnectionRefusedError, UnknownHost)):
            return unreachable(origin, cause)
        cause = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__ or cause.__context__
    return unreachable(origin, error if isinstance(error, Exception) else OSError())
