"""What Pulsar has and this broker does not, yet: declared absent, where everything else does not exist."""

from __future__ import annotations

import re

from pulsarium.broker.admin.http.errors import AdminError
from pulsarium.broker.admin.http.pulsar_routes import pulsar_routes
from pulsarium.broker.admin.http.registry import Route

FUNCTIONS = re.compile(r"/admin/v[23]/(functions|sinks?|sources?|worker|worker-stats)(/.*)?")
PACKAGES = re.compile(r"/admin/v3/packages/.+")
NO_PACKAGES = "Package Management Service is not enabled in the broker."  # enablePackagesManagement
NO_FUNCTIONS = "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false"


class AbsentRoutes:
    """Pulsar's routes, read when first somebody asks for one that is not built."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, list[str]]] | None = None

    def check(self, method: str, path: str) -> None:
        """Raise what a call is told that Pulsar would take; nothing is raised for one that it would not take either."""
        if FUNCTIONS.fullmatch(path):
            raise AdminError(409, NO_FUNCTIONS)
        if PACKAGES.fullmatch(path):
            raise AdminError(503, NO_PACKAGES)
        if self._routes is None:
            self._routes = [(route.method, route.path.split("/")) for route in pulsar_routes()]
        parts = path.split("/")
        if any(known == method and matches(template, parts) for known, template in self._routes):
            raise AdminError(501, f"{method} {path} is not built yet in Pulsarium")


def matches(template: list[str], parts: list[str]) -> bool:
    """Whether a path fits, part by part."""
    return len(template) == len(parts) and all(
        name == part or (name.startswith("{") and part) for name, part in zip(template, parts, strict=True)
    )


def absent_routes(built: set[Route]) -> list[Route]:
    """Pulsar's routes without those that are built, whatever their parameters are called."""
    known = {(route.method, anonymous(route.path)) for route in built}
    return [route for route in pulsar_routes() if (route.method, anonymous(route.path)) not in known]


def anonymous(path: str) -> str:
    """A path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)
