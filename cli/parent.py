"""`--with-parent`: end together with the process that started this one, however that process ends."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import stat
import sys
from collections.abc import Callable
from typing import Final

from pulsarium.cli.grouped import Decorator, options_of

POLL_SECONDS: Final = 0.25
PR_SET_PDEATHSIG: Final = 1

with_parent: Final[Decorator] = options_of("Process")(
    "--with-parent",
    is_flag=True,
    help="End when the process that started this one has ended, even by SIGKILL.",
)


class Parent:
    """The process that started this one, and the pipe that it keeps open on standard input, if it does."""

    def __init__(self, *, stdin: bool) -> None:
        """Remember the parent of now. With `stdin`, the end of a pipe on standard input counts as its end too."""
        self._pid = os.getppid()
        self._pipe = select.poll() if stdin and _is_pipe(0) else None
        if self._pipe is not None:
            self._pipe.register(0, 0)  # reports the end alone, and leaves the data where they are

    def ended(self) -> str:
        """Return why the parent counts as ended, or ""."""
        if os.getppid() != self._pid:
            return "the process that started this one has ended"
        if self._pipe is not None and self._pipe.poll(0):
            return "standard input has ended"
        return ""

    async def wait(self) -> str:
        """Wait for the end of the parent, and return the reason."""
        import trio

        while not (reason := self.ended()):  # noqa: ASYNC110  nothing reports the end of a parent
            await trio.sleep(POLL_SECONDS)
        return reason


def _is_pipe(descriptor: int) -> bool:
    """Return whether a descriptor is a pipe or a socket. A terminal, a file and /dev/null tell nothing of a parent."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def bound_to_this_thread() -> Callable[[], None] | None:
    """Return a function that a new child runs first, so that it gets SIGTERM when this process is killed.

    Start the child on the main thread, because Linux sends the signal when the starting thread ends. Other systems do
    not have such a signal: return None.
    """
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # killed meanwhile
            os._exit(128 + signal.SIGTERM)

    return bind
