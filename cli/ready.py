"""The ready file: where scripts read the URLs of a broker that took free ports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

URLS = ("service_url", "admin_url", "service_url_tls", "admin_url_tls")


class Urls(Protocol):
    """Where a broker answers."""

    @property
    def service_url(self) -> str: ...
    @property
    def admin_url(self) -> str: ...
    @property
    def service_url_tls(self) -> str | None: ...
    @property
    def admin_url_tls(self) -> str | None: ...


def ready_content(brokers: Sequence[Urls], pid: int) -> str:
    """{"service_url", "admin_url", "brokers": [{"service_url", "admin_url"}], "pid"} and a line feed.

    The first two are the first broker's. Ports that speak TLS add "service_url_tls" and "admin_url_tls" behind them.
    """
    each = [{name: getattr(broker, name) for name in URLS if getattr(broker, name)} for broker in brokers]
    return json.dumps({**each[0], "brokers": each, "pid": pid}, indent=2) + "\n"


def write_ready_file(path: Path, content: str) -> None:
    """Whole or not at all: whoever waits for the file never reads half of it. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(content, encoding="utf-8")
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def remove_ready_file(path: Path, content: str) -> None:
    """Removes what this process wrote; another broker's file stays."""
    try:
        if path.read_text(encoding="utf-8") == content:
            path.unlink()
    except OSError:
        pass  # gone, or not ours to touch


def remove_stale_ready_file(path: Path) -> None:
    """Removes the file of a broker that was killed, so that nobody takes its URLs for the new one's.

    Windows cannot be asked whether a process lives (there, signal 0 is Ctrl-C): the file goes in any case.
    """
    if sys.platform == "win32":
        path.unlink(missing_ok=True)
        return
    try:
        os.kill(json.loads(path.read_text(encoding="utf-8"))["pid"], 0)
    except ProcessLookupError:
        path.unlink(missing_ok=True)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        pass  # absent, of a living process, or no ready file at all
