"""Call the admin API for scenarios, and capture each cell with the broker's lab."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pulsarium.capture.file import CaptureError, CaptureReader, EventKind
from pulsarium.capture.lint.frames import Conversation
from pulsarium.proto.entry import visible_metadata
from pulsarium.proto.generated.PulsarApi_pb2 import CompressionType

_SECONDS = 30


def call(url: str, method: str, path: str, body: object = None, *, token: str = "") -> Any:
    """Return the answer's JSON, or None without a body. Follow a redirect to the owner.

    Raise `OSError` with the refusal.
    """
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
                # urllib does not repeat a PUT
                if refusal.code == 307 and urlsplit(refusal.headers["Location"]).scheme == "http":
                    target = refusal.headers["Location"]
                    continue
                raise OSError(f"{method} {path}: {refusal.code} {refusal.read().decode(errors='replace')}") from None
    raise OSError(f"{method} {path}: too many redirects")


def topic_path(topic: str) -> str:
    return "/admin/v2/" + topic.replace("://", "/")


KEPT = 256
"""Bytes of each entry in a capture."""


@contextmanager
def capturing(admin_url: str, path: Path, token: str) -> Iterator[None]:
    """Capture the broker's traffic to `path` during a block. Do nothing for a broker without a lab."""
    try:
        started = call(admin_url, "POST", "/lab/captures", {"path": str(path), "keepEntry": KEPT}, token=token)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            call(admin_url, "DELETE", f"/lab/captures/{started['id']}", token=token)


def compressions(path: Path) -> set[str]:
    """Return the compressions of a capture's sent messages, such as "lz4" or "none"."""
    found = set()
    reader, conversation = CaptureReader(), Conversation()
    with suppress(CaptureError):
        for record in reader.feed(path.read_bytes()):
            if record.kind is EventKind.FRAME and (frame := conversation.feed(record)).name == "SEND":
                metadata = visible_metadata(frame.entry)
                found.add("" if metadata is None else CompressionType.Name(metadata.compression).lower())
    return found - {""}
