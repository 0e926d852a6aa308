"""Who calls: found out before anything else, for every path that Pulsar asks it of."""

from __future__ import annotations

from typing import Final

from pulsarium.broker.auth.identity import NOBODY, AuthenticationError, HttpCredentials, Principal
from pulsarium.broker.broker import Broker
from pulsarium.broker.http.asgi import Request
from pulsarium.broker.http.errors import ContainerError
from pulsarium.broker.logs import Log

log = Log("admin")

CERTIFICATE: Final = "pulsarium.certificate"  # in the scope of a request over TLS, what the client showed
ORIGINAL_PRINCIPAL: Final = "x-original-principal"
# Pulsar's own folders; /status.html and the page at / are open, and /metrics if nothing else is said
ASKED: Final = ("admin", "lookup", "topics", "pulsarium", "lab")


def principal_of(broker: Broker, request: Request) -> Principal:
    """Who a request is from. Raises ContainerError: 401 for credentials that prove nothing."""
    authentication = broker.cluster.authentication
    if authentication is None or not is_asked(broker, request.path):
        return NOBODY
    credentials = HttpCredentials(request.headers, request.query, request.scope.get(CERTIFICATE))
    try:
        identity = authentication.of_request(credentials)
    except AuthenticationError as error:
        log.warning("not authenticated", peer=request.peer, path=request.path, reason=error)
        raise ContainerError(401, str(error)) from None
    return Principal(identity.role, request.headers.get(ORIGINAL_PRINCIPAL))


def is_asked(broker: Broker, path: str) -> bool:
    """Whether a path is for those alone who prove a role."""
    folder = path.lstrip("/").partition("/")[0]
    return folder in ASKED or (folder == "metrics" and broker.config.authenticateMetricsEndpoint)
