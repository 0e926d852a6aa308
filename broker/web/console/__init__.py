"""The console at /: its files for the browser, and the facts that no route of Pulsar's admin API has."""

from __future__ import annotations

from types import ModuleType

from pulsarium.broker.web.console import files, messages, policies, topics

MODULES: tuple[ModuleType, ...] = (files, messages, policies, topics)
