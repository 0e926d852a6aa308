"""Topics that cannot be opened: an operator can still delete them."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain

from pulsarium.broker.model.compaction.record import COMPACTION_CURSOR, LEDGER_PROPERTY
from pulsarium.broker.model.cursor.managed_cursor import ledger_path
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.info_compression import unpack
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.generated import MLDataFormats_pb2 as ml


def delete_damaged(name: str, stores: Stores) -> None:
    """Forget all that the store has of a managed ledger: what belongs to it by its path, and what that names.

    What cannot be understood any more stays, where nobody looks for it.
    """
    kept = stores.storage.load_metadata()
    path, written = f"/managed-ledgers/{name}", f"/compaction/{name}"
    folders = {path, f"/transactions/buffers/{name}"}
    acks = f"/transactions/pending-acks/{name}/"
    folders.update(each.rpartition("/")[0] for each in kept if each.startswith(acks))
    ledgers = set[int]()
    with suppress(Exception):
        ledgers.update(each.ledgerId for each in ml.ManagedLedgerInfo.FromString(unpack(kept[path])).ledgerInfo)
    for cursor in [each for each in kept if each.startswith(f"{path}/")]:
        with suppress(Exception):
            info = read_cursor_info(kept[cursor])
            folder = ledger_path(info.cursorsLedgerId)
            folders.add(folder)
            records = [ml.PositionInfo.FromString(kept[each]) for each in kept if each.startswith(f"{folder}/")]
            if cursor != f"{path}/{COMPACTION_CURSOR}":  # a consumer may write that property, too
                continue
            properties = chain(info.properties, *(record.properties for record in records))
            ledgers.update(each.value for each in properties if each.name == LEDGER_PROPERTY)
    if written in kept:
        ledgers.add(int(kept[written]))
    for each in [each for each in kept if each in (path, written) or each.rpartition("/")[0] in folders]:
        stores.turn.store(each, None)
    for ledger_id in sorted(ledgers):
        stores.turn.delete_ledger(ledger_id)
    for each in (path, written):  # who makes such a topic anew does not go on from it
        stores.recovered(each)
    for folder in folders:
        stores.recovered_under(folder)
