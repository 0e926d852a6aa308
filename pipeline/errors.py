"""What Spark says when a job fails, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""What a session that cannot be made, or a job that fails, raises."""

_ERROR_LINE = re.compile(r"^(?:: )?((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)


def error_line(text: str) -> str:
    """The line of a Spark error that says what happened: the last one of a worker's traceback, or the first of all."""
    said = text.partition("\n\tat ")[0].strip()  # Java's stack
    found = [line for line in _ERROR_LINE.findall(said) if "PythonException" not in line]
    return (found or said.splitlines() or [""])[-1 if found else 0].strip()
