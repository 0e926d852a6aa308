"""The console at /: its files for the browser, and the facts that no route of Pulsar's admin API has."""

from __future__ import annotations

from types import ModuleType

from pulsarium.broker.web.console import (
    connections,
    files,
    find,
    form,
    messages,
    overview,
    policies,
    preview,
    publish,
    topics,
)

MODULES: tuple[ModuleType, ...] = (
    connections,
    files,
    find,
    form,
    messages,
    overview,
    policies,
    preview,
    publish,
    topics,
)
