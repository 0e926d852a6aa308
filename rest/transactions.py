"""Transactions: their coordinators, what they published, what they acknowledged."""

from __future__ import annotations

from typing import Any, TypedDict

from pulsarium.rest.group import Group, Topic, twice

_ROOT = "/admin/v3/transactions"


class TransactionCoordinatorInfo(TypedDict, total=False):
    """One coordinator, and the broker that serves it."""

    id: int
    brokerServiceUrl: str


class TransactionCoordinatorStats(TypedDict, total=False):
    """Times are milliseconds since the epoch; all transactions up to `lowWaterMark` are over."""

    state: str
    leastSigBits: int
    lowWaterMark: int
    ongoingTxnSize: int
    recoverStartTime: int
    recoverEndTime: int


class TransactionMetadata(TypedDict, total=False):
    """One that is not over. `openTimestamp` is milliseconds since the epoch, `timeoutAt` how many it has."""

    txnId: str
    status: str
    openTimestamp: int
    timeoutAt: int
    owner: str
    producedPartitions: dict[str, dict[str, Any]]
    ackedPartitions: dict[str, dict[str, dict[str, Any]]]


class Transactions(Group):
    """`transactions`. A transaction is its coordinator's number and its own there: Java's mostSigBits, leastSigBits."""

    # ---- coordinators

    async def list_transaction_coordinators(self) -> list[TransactionCoordinatorInfo]:
        """All there are."""
        return await self._get(list[TransactionCoordinatorInfo], f"{_ROOT}/coordinators")

    async def get_coordinator_stats(self) -> dict[str, TransactionCoordinatorStats]:
        """Of all, by their numbers."""
        return await self._get(dict[str, TransactionCoordinatorStats], f"{_ROOT}/coordinatorStats")

    async def get_coordinator_stats_by_id(self, coordinator_id: int) -> TransactionCoordinatorStats:
        """Of one."""
        query = {"coordinatorId": coordinator_id}
        return await self._get(TransactionCoordinatorStats, f"{_ROOT}/coordinatorStats", query)

    async def get_coordinator_internal_stats(self, coordinator_id: int, *, metadata: bool = False) -> dict[str, Any]:
        """Of the ledger of its log."""
        query = {"metadata": metadata}
        return await self._get(dict[str, Any], f"{_ROOT}/coordinatorInternalStats/{coordinator_id}", query)

    async def scale_transaction_coordinators(self, replicas: int) -> None:
        """Have so many, which must be more than there are."""
        await self._post(f"{_ROOT}/transactionCoordinator/replicas", replicas)

    # ---- transactions

    async def get_slow_transactions(
        self, timeout_ms: int, coordinator_id: int | None = None
    ) -> dict[str, TransactionMetadata]:
        """Open ones with more time than that, of all coordinators or of one, by their ids."""
        query = {} if coordinator_id is None else {"coordinatorId": coordinator_id}
        return await self._get(dict[str, TransactionMetadata], f"{_ROOT}/slowTransactions/{timeout_ms}", query)

    async def get_transaction_metadata(self, most: int, least: int) -> TransactionMetadata:
        """One that is not over."""
        return await self._get(TransactionMetadata, f"{_ROOT}/transactionMetadata/{most}/{least}")

    async def abort_transaction(self, most: int, least: int) -> None:
        """Abort one, whoever's it is."""
        await self._post(f"{_ROOT}/abortTransaction/{most}/{least}")

    # ---- transaction buffers

    async def get_transaction_buffer_stats(
        self, topic: Topic, *, low_water_marks: bool = False, segment_stats: bool = False
    ) -> dict[str, Any]:
        """What a topic has of open and aborted transactions."""
        query = {"lowWaterMarks": low_water_marks, "segmentStats": segment_stats}
        return await self._get(dict[str, Any], self._path("transactionBufferStats", topic), query)

    async def get_transaction_buffer_internal_stats(self, topic: Topic, *, metadata: bool = False) -> dict[str, Any]:
        """Of the ledgers of its snapshots."""
        return await self._get(
            dict[str, Any], self._path("transactionBufferInternalStats", topic), {"metadata": metadata}
        )

    async def get_transaction_in_buffer_stats(self, most: int, least: int, topic: Topic) -> dict[str, Any]:
        """What became of one transaction on a topic."""
        return await self._get(dict[str, Any], f"{self._path('transactionInBufferStats', topic)}/{most}/{least}")

    # ---- pending acknowledgements

    async def get_pending_ack_stats(
        self, topic: Topic, subscription: str, *, low_water_marks: bool = False
    ) -> dict[str, Any]:
        """What a subscription has of open transactions."""
        query = {"lowWaterMarks": low_water_marks}
        return await self._get(dict[str, Any], self._path("pendingAckStats", topic, subscription), query)

    async def get_pending_ack_internal_stats(
        self, topic: Topic, subscription: str, *, metadata: bool = False
    ) -> dict[str, Any]:
        """Of the ledger of their log."""
        query = {"metadata": metadata}
        return await self._get(dict[str, Any], self._path("pendingAckInternalStats", topic, subscription), query)

    async def get_transaction_in_pending_ack_stats(
        self, most: int, least: int, topic: Topic, subscription: str
    ) -> dict[str, Any]:
        """What one transaction acknowledged on a subscription."""
        path = self._path("transactionInPendingAckStats", topic, subscription)
        return await self._get(dict[str, Any], f"{path}/{most}/{least}")

    async def get_position_stats_in_pending_ack(
        self, topic: Topic, subscription: str, ledger_id: int, entry_id: int, batch_index: int | None = None
    ) -> dict[str, Any]:
        """Whether an entry, or a message of its batch, waits for the end of a transaction."""
        path = f"{self._path('positionStatsInPendingAck', topic, subscription)}/{ledger_id}/{entry_id}"
        return await self._get(dict[str, Any], path, {} if batch_index is None else {"batchIndex": batch_index})

    def _path(self, what: str, topic: Topic, subscription: str | None = None) -> str:
        name = self._name(topic)
        end = "" if subscription is None else f"/{twice(subscription)}"
        return f"{_ROOT}/{what}/{name.namespace_name}/{name.encoded_local_name}{end}"
