"""The API reference has each option that a TypedDict declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe
import pytest

from pulsarium.client import Client, ScalableTopics

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(scope="module")
def reference() -> griffe.Module:
    extensions = griffe.load_extensions("scripts.pages.reference")
    loaded = griffe.load("pulsarium.client", search_paths=[SOURCE], extensions=extensions, docstring_parser="google")
    assert isinstance(loaded, griffe.Module)
    return loaded


@pytest.mark.parametrize("method", [Client.create_producer, Client.subscribe, ScalableTopics.subscribe_queue])
def test_the_reference_explains_each_option(reference: griffe.Module, method: Callable[..., Any]) -> None:
    shown = reference[f"{method.__module__.removeprefix('pulsarium.client.')}.{method.__qualname__}"]
    taken = inspect.signature(method).parameters.keys()
    assert [one.name for one in shown.parameters] == [*taken]
    (explained,) = (
        part.value for part in shown.docstring.parsed if part.kind is griffe.DocstringSectionKind.parameters
    )
    assert {one.name for one in explained} == taken - {"self"}
