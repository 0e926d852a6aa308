"""Whether a cluster can go on with what a file has: read once without effect, before anything is given up for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarium.broker.cluster import LEDGER_COUNTER, START_COUNTER
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.info_compression import unpack
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.topics import MANAGED_LEDGERS, Topics
from pulsarium.broker.storage.errors import StorageError
from pulsarium.broker.storage.memory import MemoryStorage
from pulsarium.broker.turn import Turn
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster

COUNTERS = (LEDGER_COUNTER, START_COUNTER)
LEDGERS = 2**31  # as many as a store can number
LEDGER_DEPTH = 5  # /managed-ledgers/TENANT/NAMESPACE/DOMAIN/TOPIC; what is deeper is a cursor


def check(cluster: Cluster, path: Path, kept: Mapping[str, bytes]) -> None:
    """Raise StorageError for metadata that no broker has kept; `path` is where they are from."""
    turn = Turn(MemoryStorage())  # of nobody
    metadata, schemas = Metadata(turn, cluster.config.clusterName), SchemaRegistry(turn)
    try:
        if not all(0 <= int(kept.get(counter, b"0")) < LEDGERS for counter in COUNTERS):
            raise ValueError("a counter is beyond what can be counted")
        metadata.recover(dict(kept))
        for each in (metadata.clusters, metadata.tenants, metadata.namespaces, metadata.partitioned):
            if not all(isinstance(value, dict) for value in each.values()):
                raise ValueError("what is kept of clusters, tenants, namespaces or topics is no object")
        DynamicSettings(replace(cluster.config), metadata.records)
        schemas.recover(dict(kept))
        Topics(cluster, metadata, schemas).recover(kept)
        for name, value in kept.items():
            if name.startswith(MANAGED_LEDGERS) and name.count("/") == LEDGER_DEPTH:
                ml.ManagedLedgerInfo.FromString(unpack(value))
            elif name.startswith(MANAGED_LEDGERS):
                read_cursor_info(value)
    except Exception as error:  # whatever is wrong with a file of somebody else's
        raise StorageError(f"{path} is damaged: its metadata cannot be read: {error}") from error
