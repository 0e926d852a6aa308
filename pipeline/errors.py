"""Report the failure of a Spark job in one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ERROR_LINE = re.compile(r"^(?:: )?((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)


def error_line(text: str) -> str:
    """Return the line of a Spark error that says what happened.

    It is the last error of a worker's traceback, or the first line when there is no traceback.
    """
    said = text.partition("\n\tat ")[0].strip()  # the text before Java's stack trace
    found = [line for line in _ERROR_LINE.findall(said) if "PythonException" not in line]
    return (found or said.splitlines() or [""])[-1 if found else 0].strip()


@contextmanager
def reason_first() -> Iterator[None]:
    """Have Spark show an error of this package by its reason alone, without the traceback of a worker.

    Spark prints no traceback with this variable in the environment of a worker, and ends the worker after an error.
    """
    try:
        yield
    except Exception as error:
        main = getattr(sys.modules["__main__"], "__spec__", None)
        is_worker = main is not None and main.name.startswith("pyspark.")
        if is_worker and type(error).__module__.startswith("pulsarium."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
