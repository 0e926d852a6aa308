"""A real browser: headless Chromium, and pages that a stranger's site serves."""

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
    """Return the browser's command. Without one the test skips, and fails where CI=true."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "Chromium is needed (Debian: chromium)"
        if in_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def site(html: str) -> Iterator[int]:
    """Serve one page at every path of a free port, which is given."""

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
    """Open a page, and return its document once the page's own work is done. `resolve` is a host of this machine."""
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
