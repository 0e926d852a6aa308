"""Format log lines for stderr, as text or as one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

from pulsarium.broker.logs import LogEvent
from pulsarium.proto.text import printable

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


def configure(level: str, style: str, stream: TextIO | None = None) -> None:
    """Send log lines of `level` and above to `stream` (stderr); lines of other libraries from WARNING on.

    A second call replaces the handler of the first.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    handler.set_name("pulsarium")
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == "pulsarium"]:
        root.removeHandler(old)
    root.addHandler(handler)
    threshold = getattr(logging, level.upper())
    root.setLevel(max(threshold, logging.WARNING))
    logging.getLogger("pulsarium").setLevel(threshold)


class TextFormatter(logging.Formatter):
    """Format a record in local time: `2026-01-31 12:00:00.123 INFO session: connection opened peer=127.0.0.1:50000`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        message = printable(record.getMessage())  # client names may contain line feeds
        line = f"{moment}.{_milliseconds(record)} {record.levelname} {_short(record.name)}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Format a record as a JSON object: time (UTC), level, logger, message, each fact, and exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        event = record.msg if isinstance(record.msg, LogEvent) else LogEvent(record.getMessage(), {})
        line: dict[str, object] = {
            **event.plain_facts(),
            "time": f"{moment}.{_milliseconds(record)}Z",
            "level": record.levelname.lower(),
            "logger": _short(record.name),
            "message": event.message,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _milliseconds(record: logging.LogRecord) -> str:
    return f"{int(record.msecs):03d}"


def _short(name: str) -> str:
    return name.removeprefix("pulsarium.").removeprefix("broker.")
