"""A real browser, headless Chromium, and a foreign website that serves pages to the browser."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.chromium import NAMES
from tests.foreign.toolchains import in_ci

SECONDS = 60


def chromium() -> str:
    """Return the browser's command. Without a browser, skip the test, or fail it where CI=true."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "Chromium is needed (Debian: chromium)"
        if in_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def site(html: str) -> Iterator[int]:
    """Serve one page at every path of a free port, and yield the port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def visit(url: str, profile: Path, *, resolve: str) -> str:
    """Open a page, wait for its scripts, and return its document. The host `resolve` leads to this machine."""
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"),
        f"--user-data-dir={profile}",
        f"--host-resolver-rules=MAP {resolve} 127.0.0.1",
        "--virtual-time-budget=10000",
        "--dump-dom",
    )
    run = subprocess.run([chromium(), *options, url], check=True, capture_output=True, text=True, timeout=SECONDS)
    return run.stdout
