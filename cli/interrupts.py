"""Let Ctrl-C end a command at once, or let the command close its resources first.

`pulsarium.__main__` gives SIGINT its default action before any import. So an interrupted import prints no traceback,
and the shell sees exit code 130.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GRACE_SECONDS: Final = 0.7  # for closing; the shell has its prompt within a second
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it


@contextmanager
def closing_at_ctrl_c() -> Iterator[bool]:
    """Make Ctrl-C raise KeyboardInterrupt in the block, so that the block closes its resources.

    Yield whether Ctrl-C does so. It does not where SIGINT is ignored, as in the background, or has another handler.
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
    """Make Ctrl-C end the process after at most GRACE_SECONDS, however long the block takes to close."""
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
