"""The beginning and the end of an `async with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn


class Opening:
    """An object that opens in an `async with` block, and not by `await`."""

    if not TYPE_CHECKING:  # type checkers report `await` of an object without this method

        def __await__(self) -> NoReturn:
            kind = type(self).__name__
            raise TypeError(f"a {kind} opens in a block: write `async with ... as name:` around its use, without await")


class Closing(Opening, ABC):
    """An object that is closed at the end of its `async with` block."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the object. A second call does nothing."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class Publishing(Closing):
    """A producer, which publishes its messages at the end of its `async with` block, unless an error ends the block."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the producer at once."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.aclose()
        finally:
            self.abandon()
