"""Answers, and the forms that Pulsar gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

JSON = "application/json"
SERVLET = "org.glassfish.jersey.servlet.ServletContainer"
NAMES = {
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Payload Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Request failed.",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished answer. Without `content_type` there is no such header. A `file` goes out in place of `body`.

    `raw_headers` go out in upper and lower case as they are, and as often as they are there.
    """

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw_headers: Sequence[tuple[str, str]] = ()
    file: Path | None = None


def json_bytes(value: Any) -> bytes:
    """JSON as Jackson writes it: without spaces, not escaped beyond need."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, json_bytes(value), JSON)


def text_reply(text: str, status: int = 200, content_type: str = JSON) -> Reply:
    """Plain text, which most of Pulsar's routes label as JSON."""
    return Reply(status, text.encode(errors="replace"), content_type)


def done() -> Reply:
    """204: it was changed."""
    return Reply(204)


def nothing() -> Reply:
    """200 without a body: a policy that is not set, and what some older setters answer."""
    return Reply(200)


def reason(status: int, text: str) -> Reply:
    """Pulsar's own error."""
    return json_reply({"reason": text}, status)


def unexpected(error: BaseException) -> Reply:
    """500: a fault of the broker, which its log explains."""
    name = f"{type(error).__name__}: {error}"
    return reason(500, f"\n --- An unexpected error occurred in the server ---\n\nMessage: {name}\n")


def page(status: int, message: str, url: str, accept: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error of the servlet container: JSON for who asks for JSON, else HTML."""
    if JSON in accept:
        value = {"servlet": SERVLET, "message": message, "url": url, "status": str(status)}
        lines = ",\n".join(f'"{name}":{json.dumps(text, ensure_ascii=False)}' for name, text in value.items())
        return Reply(status, f"{{\n{lines}\n}}".encode(errors="replace"), JSON, headers or {})
    rows = "".join(
        f"<tr><th>{name}:</th><td>{escape(value)}</td></tr>\n"
        for name, value in (("URI", url), ("STATUS", str(status)), ("MESSAGE", message), ("SERVLET", SERVLET))
    )
    html = (
        "<html>\n<head>\n"
        '<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {escape(message)}</title>\n</head>\n"
        f"<body><h2>HTTP ERROR {status} {escape(message)}</h2>\n<table>\n{rows}</table>\n</body>\n</html>\n"
    )
    return Reply(status, html.encode("latin-1", "xmlcharrefreplace"), "text/html;charset=iso-8859-1", headers or {})
