"""What Pulsar has and this broker has not: told as a broker without it does, where everything else does not exist."""

from __future__ import annotations

import re

from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.pulsar_routes import pulsar_routes
from pulsarium.broker.http.registry import Route

FUNCTIONS = re.compile(r"/admin/v[23]/(functions|sinks?|sources?|worker|worker-stats)(/.*)?")
PACKAGES = re.compile(r"/admin/v3/packages/.+")
NO_PACKAGES = "Package Management Service is not enabled in the broker."  # enablePackagesManagement
NO_FUNCTIONS = "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false"


def check_absent(path: str) -> None:
    """Raise what a call is told of what is not enabled; nothing is raised for a path that Pulsar has not either."""
    if FUNCTIONS.fullmatch(path):
        raise AdminError(409, NO_FUNCTIONS)
    if PACKAGES.fullmatch(path):
        raise AdminError(503, NO_PACKAGES)


def absent_routes(built: set[Route]) -> list[Route]:
    """Pulsar's routes without those that are built, whatever their parameters are called."""
    known = {(route.method, anonymous(route.path)) for route in built}
    return [route for route in pulsar_routes() if (route.method, anonymous(route.path)) not in known]


def anonymous(path: str) -> str:
    """A path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)
