"""The fuzz targets, by name."""

from __future__ import annotations

from tests.fuzz.batches import Batches
from tests.fuzz.commands import Commands
from tests.fuzz.entries import Entries
from tests.fuzz.frames import Frames
from tests.fuzz.rest import Requests
from tests.fuzz.target import Target
from tests.fuzz.websockets import WebSockets

TARGETS: dict[str, Target] = {
    target.name: target for target in (Frames(), Commands(), Entries(), Batches(), Requests(), WebSockets())
}  # fmt: skip
