"""Hand what a method was given to its options: the signature and the class of options say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's arguments out of its `locals()`, without `self`."""
    return {name: value for name, value in arguments.items() if name != "self"}
