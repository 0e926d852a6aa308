"""The places that take entries apart, and what bounds each.

A few compressed bytes hold a million messages or 128 MiB, and one step of the broker's event loop must not take longer
than 50 ms. So each module that decompresses or unpacks an entry stands here, with its bounds of time and memory.
"""

from __future__ import annotations

import re

from tests.architecture.source import ROOT, production

CALLS = re.compile(r"(?<![.\w])(?:decompress|compression\.decompress|(?:batch\.)?(?:unpack|messages_of)|open_entry)\(")
IMPORTS = re.compile(r"from pulsarium\.proto(?:\.batch|\.compression|\.compaction)? import .*")

BOUNDS = {
    # on the broker's event loop
    "broker/web/admin/topic/messages.py": "aside: a thread above 1 MiB, two at once; it takes no batch apart",
    "broker/web/console/reading.py": "aside: a thread above 1 MiB; pauses; one entry is open at a time",
    "broker/lab/expectations.py": "65,536 messages of an entry, and only for a caller who asks for values",
    "broker/lab/faults/tapped.py": "opens_at_once: 8,192 messages and 4 MiB, else the frame has no messages",
    "broker/model/compaction/compactor.py": "a thread above 8,192 messages or 1 MiB; of 65,536 messages at most",
    "broker/model/compaction/latest.py": "unpacks in the compactor's thread what takes long",
    "broker/model/topic/change_events.py": "1,000 events of at most 1 MiB and 20,000 values each, in slices of 5 ms",
    "broker/web/websocket/decoding.py": "a thread above 8,192 messages or 1 MiB; of 65,536 at most",
    "capture/lint/frames.py": "opens_at_once: 8,192 messages and 4 MiB, else the linter knows no messages",
    "proto/last_entry.py": "opens_at_once, else compaction kept the whole batch",
    "proto/compaction.py": "65,536 messages, else the batch stays; the compactor decides about threads",
    # in the store
    "broker/model/ledger/info_compression.py": "records that the broker itself wrote",
    # in processes of their own
    "cli/admin/message.py": "a million messages, as a program may lose none",
    "client/entry/decoding.py": "a million messages, as a program may lose none",
    "pipeline/compaction/opening.py": "65,536 messages, else the batch stays",
    "pipeline/entries/rows.py": "a million messages, as columns of numbers",
    "proto/compacted_values.py": "65,536 messages, else the entry stays unchanged",
}


def readers() -> set[str]:
    found = set()
    for module in production():
        text = module.path.read_text()
        if CALLS.search(text) and IMPORTS.search(text):
            found.add(str(module.path.relative_to(ROOT)))
    return found - {"proto/batch.py", "proto/compression.py"}


def test_every_reader_of_entries_says_what_bounds_it() -> None:
    assert readers() == set(BOUNDS)


def test_no_reader_on_the_event_loop_takes_more_messages_apart_than_any_other() -> None:
    """Programs alone pass a limit of their own, except for a lower one."""
    own = re.compile(r"\bunpack\([^()]*(?:\([^()]*\)[^()]*)*, (MOST_\w+)\)|messages_of\([^)]*, (MOST_\w+)\)")
    found = {(reader, *own.findall(text)) for reader in readers() if own.search(text := (ROOT / reader).read_text())}
    assert {reader for reader, *_ in found if reader.startswith(("broker/", "capture/"))} == {
        "broker/model/topic/change_events.py"
    }
