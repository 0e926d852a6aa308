"""AuthenticationProviderTls: the common name of a client's certificate is its role."""

from __future__ import annotations

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity


class CertificateProvider:
    """Takes the certificates that TLS has verified."""

    method = "tls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        if certificate is None:
            raise AuthenticationError("Failed to get TLS certificates from client")
        # Java reads the name from its end (RFC 2253): of several common names the last one counts
        for part in reversed(certificate.get("subject", ())):
            for name, value in part:
                if name == "commonName" and value:
                    return Identity(value)
        raise AuthenticationError("Client unable to authenticate with TLS certificate")

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        return self.authenticate(b"", request.certificate)
