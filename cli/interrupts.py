"""Have Ctrl-C end a command at once, unless something is to be closed before.

`pulsarium.__main__` gives SIGINT its default action before anything is imported: no traceback comes from an import that
was cut short, and a shell sees 130.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GRACE_SECONDS: Final = 0.7  # for what is to be closed; a shell has its prompt within a second
INTERRUPTED: Final = 130  # 128 + SIGINT, as a shell says it


@contextmanager
def closing_at_ctrl_c() -> Iterator[bool]:
    """Have Ctrl-C raise KeyboardInterrupt in the block, so that what the block opened is closed.

    Yields whether that is so: a shell in the background has Ctrl-C ignored, and other programs see to it themselves.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield False
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def leaving_in_time() -> Iterator[None]:
    """Have Ctrl-C end the process soon, however long the closing takes that it begins."""
    begins = signal.getsignal(signal.SIGINT)
    assert callable(begins)

    def interrupted(number: int, frame: object) -> None:
        end = threading.Timer(GRACE_SECONDS, os._exit, (INTERRUPTED,))
        end.daemon = True
        end.start()
        begins(number, frame)  # type: ignore[arg-type]

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, begins)
