"""The fuzz targets, by name."""

from __future__ import annotations

from yardsticks.fuzz.batches import Batches
from yardsticks.fuzz.commands import Commands
from yardsticks.fuzz.entries import Entries
from yardsticks.fuzz.frames import Frames
from yardsticks.fuzz.rest import Requests
from yardsticks.fuzz.target import Target
from yardsticks.fuzz.websockets import WebSockets

TARGETS: dict[str, Target] = {
    target.name: target for target in (Frames(), Commands(), Entries(), Batches(), Requests(), WebSockets())
}  # fmt: skip
