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


def takes(make: Callable[P, Made]) -> Callable[[Callable[[Made], Result]], Callable[P, Result]]:
    """As `arguments_of`, for a function that is no method."""

    def decorate(function: Callable[[Made], Result]) -> Callable[P, Result]:
        @functools.wraps(function)
        def taking(*args: P.args, **kwargs: P.kwargs) -> Result:
            return function(make(*args, **kwargs))

        taking.__signature__ = _signature(function, make)  # type: ignore[attr-defined]  # for help()
        return taking

    return decorate


def _signature(decorated: Callable[..., Any], make: Callable[..., Any]) -> inspect.Signature:
    """What `decorated` has in front of its last parameter, and in place of that one what `make` takes."""
    own, taken = inspect.signature(decorated), inspect.signature(make)
    kept = [one.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for one in own.parameters.values()][:-1]
    return own.replace(parameters=[*kept, *taken.parameters.values()])
