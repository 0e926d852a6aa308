"""The console's files: one page and its modules, which load nothing from other hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pulsarium.broker.auth.needs import ANYBODY
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply

FOLDER: Final = Path(__file__).with_name("static")
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@route("GET", "/", needs=ANYBODY)
def page(call: Call) -> HttpReply:
    """Return the console's page."""
    return _file("index.html")


@route("GET", "/console/{file}", needs=ANYBODY)
def file(call: Call) -> HttpReply:
    """Return a module, a stylesheet or the picture of the console."""
    return _file(call.parameter("file"))


def _file(name: str) -> HttpReply:
    path = FOLDER / name
    if path.suffix not in TYPES or path.parent != FOLDER or not path.is_file():
        raise AdminError(404, f"The console has no file {name}")
    return HttpReply(200, path.read_bytes(), TYPES[path.suffix], HEADERS)
