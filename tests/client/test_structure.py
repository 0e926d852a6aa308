"""Rules of the client's own rooms: who owns what, and what every part may rely on."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pulsarium.client
from pulsarium.client import Consumer, Producer, RawReader, Reader, Receipt
from tests.client import test_checkpoints

FILES = sorted(Path(pulsarium.client.__file__).parent.rglob("*.py"))

#: Async methods that always wait for the broker.
ELSEWHERE = {"__aenter__", "__aexit__"}


def assigned_elsewhere(tree: ast.AST) -> Iterator[str]:
    """Names of attributes that a module assigns to other objects than `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            yield node.attr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nobody_assigns_a_callback_of_another_object(path: Path) -> None:
    found = assigned_elsewhere(ast.parse(path.read_text()))
    assert [name for name in found if name.startswith(("on_", "_on_"))] == []


@pytest.mark.parametrize("kind", [Consumer, Producer, RawReader, Reader, Receipt])
def test_every_async_method_is_held_to_be_a_checkpoint(kind: type) -> None:
    """A new one belongs into tests/client/test_checkpoints.py."""
    held = inspect.getsource(test_checkpoints).replace("anext(", "__anext__")
    methods = {name for name, one in vars(kind).items() if inspect.iscoroutinefunction(one)} - ELSEWHERE
    shown = [name for name in methods if name.strip("_") == name or name == "__anext__"]
    assert [name for name in shown if not re.search(rf"\b{name}\b", held)] == []
