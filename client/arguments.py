"""Arguments with one owner: a method takes those of a class of options, or of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
Self_ = TypeVar("Self_")
Made = TypeVar("Made")
Result = TypeVar("Result")


def arguments_of(
    make: Callable[P, Made],
) -> Callable[[Callable[[Self_, Made], Result]], Callable[Concatenate[Self_, P], Result]]:
    """The decorated method takes the arguments of `make`, and is given what that makes of them."""

    def decorate(method: Callable[[Self_, Made], Result]) -> Callable[Concatenate[Self_, P], Result]:
        @functools.wraps(method)
        def taking(self: Self_, /, *args: P.args, **kwargs: P.kwargs) -> Result:
            return method(self, make(*args, **kwargs))

        taking.__signature__ = _signature(method, make)  # type: ignore[attr-defined]  # for help()
        return taking

    return decorate


def _signature(method: Callable[..., Any], make: Callable[..., Any]) -> inspect.Signature:
    own, taken = inspect.signature(method), inspect.signature(make)
    first = next(iter(own.parameters.values())).replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    return own.replace(parameters=[first, *taken.parameters.values()])
