"""The ready file: where scripts read the URLs of a broker that took free ports."""

import json
import os
from pathlib import Path


def ready_content(service_url: str, admin_url: str, pid: int) -> str:
    """{"service_url", "admin_url", "brokers": [{"service_url", "admin_url"}], "pid"} and a line feed."""
    urls = {"service_url": service_url, "admin_url": admin_url}
    return json.dumps({**urls, "brokers": [urls], "pid": pid}, indent=2) + "\n"


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
    """Removes the file of a broker that was killed, so that nobody takes its URLs for the new one's."""
    try:
        os.kill(json.loads(path.read_text(encoding="utf-8"))["pid"], 0)
    except ProcessLookupError:
        path.unlink(missing_ok=True)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        pass  # absent, of a living process, or no ready file at all
