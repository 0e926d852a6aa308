"""Trace which lines inputs reach, and select the few inputs that together reach all of these lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

from yardsticks.fuzz.oracle import Finding
from yardsticks.fuzz.target import Target

PARTS = {"pulsarium.broker", "pulsarium.proto", "pulsarium.client"}  # packages whose lines count


class Coverage:
    """The lines of Pulsarium that inputs have reached so far.

    A function is traced until all of its lines have been reached.
    """

    def __init__(self) -> None:
        self.new = 0
        self._left: dict[CodeType, set[int]] = {}

    def adds(self, target: Target, data: bytes) -> bool:
        """Run an input, and return whether it reaches a line that no earlier input reached."""
        self.new = 0
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            target.run(data)
        except Finding:  # inputs with findings are kept in the file of findings
            return False
        finally:
            sys.settrace(before)
        return self.new > 0

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            name = ".".join(frame.f_globals.get("__name__", "").split(".")[:2])
            lines = {line for _, _, line in code.co_lines() if line} - {code.co_firstlineno} if name in PARTS else set()
            left = self._left[code] = lines
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        left = self._left[frame.f_code]
        if event == "line" and frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self.new += 1
        return self._line if left else None


def fewest(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Return the few inputs that together reach all lines that `inputs` reach.

    The first pass prefers small inputs. The second one drops those of them that larger inputs replace.
    """
    kept = sorted(set(inputs), key=lambda data: (len(data), data))
    for _ in range(2):
        coverage = Coverage()
        kept = [data for data in kept if coverage.adds(target, data)][::-1]
    return kept
