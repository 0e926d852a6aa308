"""/lab/captures: start, stop and read captures of this broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pulsarium.broker.clock import instant_text
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.lab.find import lab_of, numbered
from pulsarium.capture.file import SUFFIX, CaptureReader

if TYPE_CHECKING:
    from pulsarium.broker.lab.capture import Capture

ROOT = "/lab/captures"
NO_FOLDER = (
    "path: this broker writes no files for clients; start it with pulsarium serve --lab-dir DIR, or capture in memory: "
    "pulsarium capture start, without a file"
)
JSON_LINES = "application/x-ndjson"
PACKETS = "application/x-pcapng"
FIRST = "X-Pulsarium-First"
"""Response header: the number of the first record in the answer."""
_LINES_AT_ONCE = 1 << 17  # bytes of frames in one answer; decoding a frame takes about ten microseconds
_BYTES_AT_ONCE = 4 << 20


@route("GET", ROOT)
def get_captures(call: Call) -> HttpReply:
    """List the running captures, and the last ones that ended."""
    return json_reply([capture_to_json(each) for each in lab_of(call).captures.all])


@route("POST", ROOT)
def start_capture(call: Call) -> HttpReply:
    """Start a capture: {"path": a file below --lab-dir, or none for memory, "keepEntry": bytes of each message}."""
    asked = call.json_object("a capture") or {}
    unknown = asked.keys() - {"path", "keepEntry"}
    if unknown:
        raise AdminError(400, f"{', '.join(sorted(unknown))}: a capture takes path and keepEntry")
    keep = asked.get("keepEntry")
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise AdminError(400, "keepEntry must be the number of bytes to keep of each message, 0 or more")
    try:
        capture = lab_of(call).captures.start(_path(lab_of(call).folder, asked), keep_entry=keep)
    except BlockingIOError as error:
        raise AdminError(409, f"path: {asked['path']}: {error.strerror}; stop it, or name another file") from None
    except OSError as error:
        raise AdminError(400, f"path: {asked['path']}: {error.strerror or error}") from None
    return json_reply(capture_to_json(capture))


@route("GET", f"{ROOT}/{{id}}")
def get_capture(call: Call) -> HttpReply:
    """Show a capture."""
    return json_reply(capture_to_json(_capture(call)))


@route("POST", f"{ROOT}/{{id}}/stop")
def stop_capture(call: Call) -> HttpReply:
    """End a capture. Its records can still be read."""
    capture = _capture(call)
    capture.stop()
    return json_reply(capture_to_json(capture))


@route("DELETE", f"{ROOT}/{{id}}")
def delete_capture(call: Call) -> HttpReply:
    """End a capture, and delete its records from memory. A file stays."""
    lab_of(call).captures.forget(_capture(call))
    return done()


@route("DELETE", ROOT)
def delete_captures(call: Call) -> HttpReply:
    """End all captures, and delete their records from memory. Files stay."""
    for each in lab_of(call).captures.all:
        lab_of(call).captures.forget(each)
    return done()


@route("GET", f"{ROOT}/{{id}}/records")
def get_records(call: Call) -> HttpReply:
    """Return a capture file: its head, and some records behind number `after` (0: from the first one)."""
    capture = _capture(call)
    first, records = _read(capture, _after(call), _BYTES_AT_ONCE)
    body = b"".join((capture.head, *records))
    return HttpReply(200, body, "application/octet-stream", {FIRST: str(first)})


@route("GET", f"{ROOT}/{{id}}/frames")
def get_frames(call: Call) -> HttpReply:
    """Return some records behind number `after` as JSON lines, or an empty body without new records.

    `full=true` adds long fields and payloads. A frame's topic is known when the command that names the topic is in the
    same answer.
    """
    from pulsarium.capture.as_json import described  # imported late: most brokers never need this
    from pulsarium.capture.lint.checker import Walk

    capture, full = _capture(call), call.flag("full")
    first, records = _read(capture, _after(call), _LINES_AT_ONCE)
    reader, walk = CaptureReader(), Walk()
    read = reader.feed(b"".join((capture.head, *records)))
    lines = [described(number, record, walk.feed(record)[1], full=full) for number, record in enumerate(read, first)]
    return HttpReply(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), JSON_LINES)


@route("GET", f"{ROOT}/{{id}}/packets")
def get_packets(call: Call) -> HttpReply:
    """Return all records as packets for Wireshark: a pcapng file."""
    capture = _capture(call)
    _read(capture, 0, 1)  # a file that cannot be read is refused before the answer begins
    return HttpReply(200, content_type=PACKETS, pieces=_packets(capture))


def _packets(capture: Capture) -> Iterator[bytes]:
    """Yield the packets of the records that the capture has now, record by record."""
    from pulsarium.capture.pcap.exporter import Exporter  # imported late: most brokers never need this

    packets: list[bytes] = []
    exporter = Exporter(packets.append, capture.header)
    yield packets.pop()
    number, last = 0, capture.records_written
    while number < last:
        first, records = _read(capture, number, _BYTES_AT_ONCE)
        if not records:  # a full disk took no more
            return
        for number, record in enumerate(CaptureReader().feed(b"".join((capture.head, *records))), first):
            exporter.feed(number, record)
            yield b"".join(packets)
            packets.clear()


def _capture(call: Call) -> Capture:
    return numbered(call, "capture", lab_of(call).captures.find, lab_of(call).captures.all)


def _after(call: Call) -> int:
    given = call.query.get("after", "0")
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise AdminError(400, "after is the number of a record, 0 or more; the answer begins behind that record")
    return int(given)


def _read(capture: Capture, after: int, most: int) -> tuple[int, list[bytes]]:
    try:
        return capture.read(after, most)
    except OSError as error:
        raise AdminError(410, f"{capture.path}: {error.strerror or error}") from None


def _path(folder: Path | None, asked: Mapping[str, Any]) -> Path | None:
    """Return the requested file, which must be below `folder`, or None to capture in memory."""
    given = asked.get("path")
    if given is None:
        return None
    if folder is None:
        raise AdminError(403, NO_FOLDER)
    if not (isinstance(given, str) and given.endswith(SUFFIX) and given.isprintable()):
        raise AdminError(400, f"path: give a name that ends with {SUFFIX}, below the folder of --lab-dir")
    if PurePath(given).is_absolute() or ".." in PurePath(given).parts:
        raise AdminError(400, f"path: {given}: give it relative to the folder of --lab-dir, without ..")
    try:
        root = folder.resolve()
        path = (root / given).resolve()
    except (OSError, RuntimeError) as error:  # symbolic links in a circle
        raise AdminError(400, f"path: {given}: {error}") from None
    if not path.is_relative_to(root):
        raise AdminError(400, f"path: {given}: a link leads out of the folder of --lab-dir; name another file")
    return path


def capture_to_json(capture: Capture) -> dict[str, Any]:
    """Return a capture with its counts."""
    return {
        "id": capture.id,
        "path": None if capture.path is None else str(capture.path),
        "running": capture.running,
        "startedAt": instant_text(capture.header.wall_ns // 1_000_000),
        "records": capture.records_written,
        "frames": capture.frames,
        "dropped": capture.dropped,
        "reason": capture.reason or None,
    }
