"""Recognize another protocol at the broker's port, and name the URL to try instead."""

from __future__ import annotations

import ssl

from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.tcp import UnknownHost
from pulsarium.client.errors import AuthenticationError, ConnectError, PulsarError, WrongProtocol
from pulsarium.proto.first_bytes import HTTP_ANSWER, NO_TLS, OTHER_NAME, TLS_ALERT, TLS_HANDSHAKE, is_frame


def answered(address: BrokerAddress, first: bytes, error: ConnectError) -> ConnectError:
    """Return the error for a broker that sent these first bytes in place of CONNECTED."""
    if first.startswith(HTTP_ANSWER):
        return WrongProtocol(
            f"{address}: HTTP answers there, as at the port of the admin API; the port of Pulsar's clients is another "
            f"one, by default {address.usual.url}"
        )
    if first.startswith((TLS_ALERT, TLS_HANDSHAKE)):
        return WrongProtocol(f"{address}: that port speaks TLS; connect to {address.other.url}")
    if not is_frame(first):
        return WrongProtocol(
            f"{address}: no Pulsar broker answers there: the answer begins with {first!r}; the port of Pulsar's "
            f"clients is by default {address.usual.url}"
        )
    if first:
        return ConnectError(f"{address}: {error}")
    remedy = "" if address.tls else f"; if it is a port for TLS, connect to {address.other.url}"
    return ConnectError(f"{address}: closed before it answered{remedy}")


def silent(address: BrokerAddress, seconds: float) -> ConnectError:
    """Return the error for an open connection on which nothing came within these seconds."""
    return ConnectError(
        f"{address}: connected, and no answer within {seconds:g} s: the broker hangs, or it is another server; the "
        f"port of Pulsar's clients is by default {address.usual.url}"
    )


def in_handshake(place: str, other: str, error: Exception) -> PulsarError:
    """Return the error for a failed TLS handshake. `other` is the URL without TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        found = error.verify_message.rstrip(".")
        if error.verify_code in OTHER_NAME:
            return AuthenticationError(
                f"{place}: {found}; connect by a name that the certificate has, or with tls_validate_hostname=False"
            )
        return AuthenticationError(
            f"{place}: the certificate is not trusted: {found}; give its authority's file as tls_trust_certs_file_path"
        )
    if isinstance(error, ssl.SSLError):
        if error.reason in NO_TLS:
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
