"""Look up tests that pages of docs/ name."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def exists(test: str) -> bool:
    """Return whether a file below tests/ has this function: `FILE::FUNCTION`."""
    path, _, name = test.partition("::")
    functions = (node for node in ast.parse((TESTS / path).read_text()).body)
    return name in {node.name for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
