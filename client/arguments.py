"""Options of a method that a TypedDict declares: their check, and their place in `help` and `inspect.signature`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, Final, TypeVar, cast

from typing_extensions import get_original_bases, is_typeddict

from pulsarium.proto.text import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

_TEXT: Final = re.compile(r"^ {4}([a-z_]+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_REST: Final = re.compile(r"^ {4}\*\*options: .*(?:\n {8}.*)*", re.MULTILINE)


def takes(arguments: type, options: type) -> Callable[[F], F]:
    """Return a decorator of a method whose `**options` are those of the TypedDict `arguments`.

    The method refuses any other option by name. Its signature has each option, with the default of the field in
    `options`, a dataclass. Its docstring has the text of each option: its own, or that below `Attributes:` of the
    TypedDict.
    """

    def decorated(method: F) -> F:
        signature = _signature(method, arguments, options)

        @wraps(method)
        def checked(*given: Any, **named: Any) -> Any:
            for name in named:
                if name not in signature.parameters:
                    near = did_you_mean(name, signature.parameters) or f"see help({method.__qualname__})"
                    raise TypeError(f"{method.__name__}() has no option '{name}': {near}")
            return method(*given, **named)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = _explained(method.__doc__ or "", signature, _texts(arguments))
        return cast(F, checked)

    return decorated


def texts_of(doc: str | None) -> dict[str, str]:
    """Return the text of each argument in a docstring. Further lines keep their indent."""
    return dict(_TEXT.findall(inspect.cleandoc(doc or "")))


def _texts(arguments: type) -> dict[str, str]:
    """Return the text of each option of a TypedDict and its bases."""
    found: dict[str, str] = {}
    for base in get_original_bases(arguments):
        if is_typeddict(base):
            found |= _texts(base)
    return found | texts_of(arguments.__doc__)


def _signature(method: Callable[..., Any], arguments: type, options: type) -> inspect.Signature:
    """Return the signature of a method with the options in the order of the dataclass, in place of `**options`."""
    own = inspect.signature(method)
    types = arguments.__annotations__
    declared = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=types[each.name].__forward_arg__,
        )
        for each in fields(options)
        if each.name in types
    ]
    return own.replace(parameters=[*own.parameters.values()][:-1] + declared)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _explained(doc: str, signature: inspect.Signature, texts: dict[str, str]) -> str:
    """Return the docstring with the texts of the options in place of `**options: ...`."""
    doc = inspect.cleandoc(doc)
    own = texts_of(doc)
    rest = [f"    {name}: {texts[name]}" for name in signature.parameters if name in texts and name not in own]
    return _REST.sub(lambda _: "\n".join(rest), doc)
