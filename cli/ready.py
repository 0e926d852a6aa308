"""The ready file, from which scripts read the URLs of a broker on free ports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

URLS = ("service_url", "admin_url", "service_url_tls", "admin_url_tls")


class Urls(Protocol):
    """The URLs of a broker."""

    @property
    def service_url(self) -> str: ...
    @property
    def admin_url(self) -> str: ...
    @property
    def service_url_tls(self) -> str | None: ...
    @property
    def admin_url_tls(self) -> str | None: ...


def ready_content(brokers: Sequence[Urls], pid: int, toxiproxy_url: str | None = None) -> str:
    """Return the JSON of the ready file: service_url, admin_url, brokers (a list of the same two) and pid.

    The first two are the URLs of the first broker. With TLS, service_url_tls and admin_url_tls follow. With Toxiproxy's
    control API, its toxiproxy_url follows the brokers.
    """
    each = [{name: getattr(broker, name) for name in URLS if getattr(broker, name)} for broker in brokers]
    control = {} if toxiproxy_url is None else {"toxiproxy_url": toxiproxy_url}
    return json.dumps({**each[0], "brokers": each, **control, "pid": pid}, indent=2) + "\n"


def write_ready_file(path: Path, content: str) -> None:
    """Write the ready file as a whole, so that readers never see half of it. Raise OSError when that fails."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(content, encoding="utf-8")
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def remove_ready_file(path: Path, content: str) -> None:
    """Remove the ready file unless another broker has replaced it."""
    try:
        if path.read_text(encoding="utf-8") == content:
            path.unlink()
    except OSError:
        pass  # gone, or not ours to touch


def remove_stale_ready_file(path: Path) -> None:
    """Remove the ready file of a killed broker, so that nobody takes its URLs for those of the new broker.

    On Windows, signal 0 is Ctrl-C, so nothing can check whether the process lives. There the file is always removed.
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
