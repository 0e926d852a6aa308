"""Stored records of cursors and ledgers, as Pulsar 4.2.4's own classes read them."""

from __future__ import annotations

import subprocess
from itertools import groupby

import pytest

from pulsarium.broker.model.cursor.records import CursorProperties, SubscriptionProperties
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from tests.broker.model.cursor.kept import Kept
from tests.broker.model.stores import NAME, append, cluster_of

from .toolchains import RECORDS, require

KINDS = ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
HOLES = [1, 3, *range(60, 70), 127, 128, *range(192, 256), 299, 301]
LEDGERS = (300, 20)


def read(*records: tuple[str, bytes]) -> list[str]:
    """Return what Pulsar's classes find in each record."""
    target = require(RECORDS).parent
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{target}/classes:{target}/lib/*"]
    lines = "".join(f"{kind} {record.hex()}\n" for kind, record in records)
    run = subprocess.run(
        [*command, "pulsarium.records.Main"], input=lines, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def runs(positions: list[Position]) -> str:
    """Return the unbroken runs of positions in Pulsar's form."""
    found = []
    for _, run in groupby(enumerate(positions), lambda each: (each[1].ledger_id, each[1].entry_id - each[0])):
        members = [position for _, position in run]
        first, last = members[0], members[-1]
        found.append(f"({first.ledger_id}:{first.entry_id - 1}..{last}]")
    return f"[{','.join(found)}]"


def expected(kept: Kept, properties: str) -> str:
    holes = runs([kept.positions[index] for index in HOLES])
    first = kept.positions[0].ledger_id
    return f"mark={first}:-1 holes={holes} batches=[{first}:10[21,-1], {first}:12[1]] properties={properties}"


def cursor(**config: object) -> Kept:
    kept = Kept(*LEDGERS, **config)
    kept.cursor.ack_batch(kept.positions[10], [21, -1])
    kept.cursor.ack_batch(kept.positions[12], [1, 0])
    kept.cursor.properties = CursorProperties({"n": -5})
    kept.cursor.cursor_properties = SubscriptionProperties({"a": "b"})
    kept.ack(*HOLES)
    return kept


@pytest.mark.req("S423-65", "S423-66", "S423-73", "S54-03", "S54-05")
async def test_the_entries_of_a_cursor_ledger() -> None:
    made = [cursor(managedLedgerPersistIndividualAckAsLongArray=long_arrays) for long_arrays in (True, False)]
    records = [kept.record for kept in made]
    assert [bool(record and record.individualDeletedMessageRanges) for record in records] == [True, False]
    answers = read(*(("position", record.SerializeToString()) for record in records if record is not None))
    assert answers == [expected(kept, "{n=-5}") for kept in made]


@pytest.mark.req("S423-67", "S423-68", "S423-69", "S423-73", "S54-04")
async def test_cursors_in_the_metadata_store() -> None:
    records: list[tuple[str, bytes]] = []
    answers: list[str] = []
    for kind in KINDS:
        kept = cursor(managedCursorInfoCompressionType=kind, managedCursorInfoCompressionThresholdInBytes=0)
        pointing = kept.store.metadata[kept.cursor.path]
        ledger_id = kept.cursor.ledger_id
        kept.restart()
        whole = kept.store.metadata[kept.cursor.path]
        assert whole.startswith(b"\x47\x78") is (kind != "NONE")
        records += [("cursor", pointing), ("cursor", whole)]
        numbers, texts = ("{n=-5}", "{a=b}") if kind == "NONE" else ("{}", "{}")
        first = kept.positions[0].ledger_id
        answers += [
            f"ledger={ledger_id} mark={first}:-1 holes=[] batches=[] properties={numbers} texts={texts}",
            f"ledger=-1 {expected(kept, numbers)} texts={texts}",
        ]
    assert read(*records) == answers


@pytest.mark.req("S423-70", "S423-71", "S423-73")
async def test_ledgers_of_a_topic() -> None:
    records, answers = [], []
    for kind in [*KINDS, "FOO"]:
        cluster = cluster_of(managedLedgerInfoCompressionType=kind, managedLedgerInfoCompressionThresholdInBytes=0)
        ledger = ManagedLedger(NAME, cluster)
        for count in (3, 5):
            append(ledger, cluster, *[b"x"] * count)
            ledger.reopen()
        cluster.turn.finish()
        records.append(("ledger", cluster.storage.metadata[ledger.path]))  # type: ignore[attr-defined]
        first, second, current = ledger.ledgers
        answers.append(f"ledgers=[{first}:3, {second}:5, {current}:open]")
    assert read(*records) == answers
