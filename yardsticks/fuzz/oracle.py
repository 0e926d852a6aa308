"""Check that no input causes an internal error, or takes much time or much memory."""

from __future__ import annotations

import logging
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_SECONDS = 20.0  # CPU time of one input, which is usually a few milliseconds, even under instrumentation
MOST_MEMORY = 256 << 20  # bytes that one input of a few KB may add to the peak memory of the process
ROOT = Path(__file__).parents[2]


class Finding(Exception):
    """A fault that an input caused. Inputs that cause the same fault at the same place have the same `key`."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}\n{text}")
        self.key = key


class _Errors(logging.Handler):
    """A log handler that keeps the first error that the broker logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first: tuple[str, BaseException | None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.first is None:
            self.first = record.getMessage(), record.exc_info[1] if record.exc_info else None


@contextmanager
def watched() -> Iterator[None]:
    """Raise `Finding` when the block raises an exception, logs an error, or takes too much CPU time or memory."""
    errors, logger = _Errors(), logging.getLogger("pulsarium")
    logger.addHandler(errors)
    memory, begin = _most_memory(), time.process_time()
    try:
        yield
    except Finding:
        raise
    except Exception as error:
        if errors.first is None:
            raise _finding("escaped", error) from error
    finally:
        logger.removeHandler(errors)
    if errors.first is not None:
        text, fault = errors.first
        raise Finding(text, text) if fault is None else _finding(text.partition(" peer=")[0], fault) from fault
    seconds, grown = time.process_time() - begin, _most_memory() - memory
    if seconds > MOST_SECONDS:
        raise Finding("slow", f"{seconds:.1f} s of CPU")
    if grown > MOST_MEMORY:
        raise Finding("memory", f"{grown} bytes more than ever before")


def _finding(what: str, error: BaseException) -> Finding:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Finding):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT) and ".venv" not in frame.filename]
    place = "?"
    if ours:
        place = f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].name}"
    text = "".join(traceback.format_exception(error))
    return Finding(f"{what.partition(' ')[0]}: {type(error).__name__} in {place}", text)


def _most_memory() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
