"""Scripts for the tests of compaction: messages to publish, and messages that remain."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[int, int]  # entry and batch index


Got: TypeAlias = tuple[Place, str, bytes]  # with key and message


NOTHING_LEFT = (-1, 0)


class Script(NamedTuple):
    """Batches of (key, message), and the last id and the messages that `read_compacted` finds."""

    batched: bool
    entries: list[list[tuple[str, bytes]]]
    last: Place
    got: list[Got]

    def everything(self) -> list[Got]:
        return [
            ((entry, index if self.batched else -1), key, message)
            for entry, batch in enumerate(self.entries)
            for index, (key, message) in enumerate(batch)
        ]


SCRIPTS = {
    "cpA": Script(
        True,
        [[("k1", b"a"), ("k2", b"b")], [("k1", b"c"), ("k3", b"d"), ("k3", b"")]],
        (1, 0),
        [
            ((0, 0), "", b""),
            ((0, 1), "k2", b"b"),
            ((1, 0), "k1", b"c"),
            ((1, 1), "", b""),
            ((1, 2), "", b""),
        ],
    ),
    "cpB": Script(
        True,
        [[("k1", b"a"), ("k2", b"b")], [("k3", b"d"), ("k3", b"")]],
        (0, 1),
        [((0, 0), "k1", b"a"), ((0, 1), "k2", b"b")],
    ),
    "cpC": Script(False, [[("k1", b"a")], [("k2", b"b")], [("k1", b"")]], (1, -1), [((1, -1), "k2", b"b")]),
    "cpD": Script(False, [[("k1", b"a")], [("k1", b"")]], NOTHING_LEFT, []),
    "cpE": Script(True, [[("k1", b"a"), ("k1", b"")]], NOTHING_LEFT, []),
    "cpF": Script(
        True,
        [[("k1", b"a"), ("k2", b"b")], [("k1", b"c"), ("k1", b"d")]],
        (1, 1),
        [
            ((0, 0), "", b""),
            ((0, 1), "k2", b"b"),
            ((1, 0), "", b""),
            ((1, 1), "k1", b"d"),
        ],
    ),
}
