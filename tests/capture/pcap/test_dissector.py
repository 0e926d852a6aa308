"""The generated dissector covers the whole protocol. tests/foreign/test_wireshark.py runs the dissector."""

from __future__ import annotations

import re

from pulsarium.capture.pcap.dissector import dissector
from pulsarium.proto.commands import COMMANDS


def test_the_dissector_knows_every_command() -> None:
    text = dissector()
    for spec in COMMANDS.values():
        assert f'[{spec.type}] = "{spec.name}"' in text
        assert re.search(rf'\[\d+\] = {{ "{spec.field}", "message", "\w+" }}', text)
