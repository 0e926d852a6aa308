"""The extras of the package: libraries that only some of it needs, and what to do where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class MissingExtra(ImportError):
    """A library is not installed; the text says how to get it."""

    def __init__(self, what: str, extra: str, module: str | None) -> None:
        super().__init__(f'{what} needs {module}; install it with: pip install "pulsarium[{extra}]"', name=module)


def look_for(what: str, extra: str, *modules: str) -> None:
    """Raise MissingExtra unless all modules are there; none of them is imported."""
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(what, extra, module)


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Have the imports of `what` stand inside: where one fails, MissingExtra names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(what, extra, error.name) from None
