"""Report the failure of a Spark job in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""Errors of a session that cannot start, and of a job that fails."""

_ERROR_LINE = re.compile(r"^(?:: )?((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)


def error_line(text: str) -> str:
    """Return the line of a Spark error that says what happened.

    It is the last error of a worker's traceback, or the first line when there is no traceback.
    """
    said = text.partition("\n\tat ")[0].strip()  # the text before Java's stack trace
    found = [line for line in _ERROR_LINE.findall(said) if "PythonException" not in line]
    return (found or said.splitlines() or [""])[-1 if found else 0].strip()
