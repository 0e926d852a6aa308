"""The few calls of the admin API that scenarios need."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 30


def call(url: str, method: str, path: str, body: object = None, *, token: str = "") -> Any:
    """The answer's JSON, None without; a redirect to the owner is followed. Raises OSError with what was refused."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    target = url.rstrip("/") + path
    for _ in range(5):
        request = urllib.request.Request(target, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                content = answer.read()
                return json.loads(content) if content else None
        except urllib.error.HTTPError as refusal:
            with refusal:
                # urllib repeats no PUT by itself.
                if refusal.code == 307 and urlsplit(refusal.headers["Location"]).scheme == "http":
                    target = refusal.headers["Location"]
                    continue
                raise OSError(f"{method} {path}: {refusal.code} {refusal.read().decode(errors='replace')}") from None
    raise OSError(f"{method} {path}: too many redirects")


def topic_path(topic: str) -> str:
    return "/admin/v2/" + topic.replace("://", "/")
