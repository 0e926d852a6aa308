"""Calls about transactions, their coordinators, transaction buffers and pending acknowledgements."""

from __future__ import annotations

from typing import Any, TypedDict

from pulsarium.rest.group import CallGroup, Topic, twice

_ROOT = "/admin/v3/transactions"


class TransactionCoordinatorInfo(TypedDict, total=False):
    """A coordinator, and the broker that serves it."""

    id: int
    brokerServiceUrl: str


class TransactionCoordinatorStats(TypedDict, total=False):
    """Stats of a coordinator.

    Times are in milliseconds since the epoch. All transactions up to `lowWaterMark` have ended.
    """

    state: str
    leastSigBits: int
    lowWaterMark: int
    ongoingTxnSize: int
    recoverStartTime: int
    recoverEndTime: int


class TransactionMetadata(TypedDict, total=False):
    """An open transaction.

    `openTimestamp` is in milliseconds since the epoch, `timeoutAt` is a duration in milliseconds.
    """

    txnId: str
    status: str
    openTimestamp: int
    timeoutAt: int
    owner: str
    producedPartitions: dict[str, dict[str, Any]]
    ackedPartitions: dict[str, dict[str, dict[str, Any]]]


class Transactions(CallGroup):
    """Calls of `transactions`.

    A transaction has two numbers: its coordinator's and its own there, Java's mostSigBits and leastSigBits.
    """

    # ---- coordinators

    async def list_transaction_coordinators(self) -> list[TransactionCoordinatorInfo]:
        """Return all transaction coordinators."""
        return await self._get(list[TransactionCoordinatorInfo], f"{_ROOT}/coordinators")

    async def get_coordinator_stats(self) -> dict[str, TransactionCoordinatorStats]:
        """Return the stats of all coordinators, by their numbers."""
        return await self._get(dict[str, TransactionCoordinatorStats], f"{_ROOT}/coordinatorStats")

    async def get_coordinator_stats_by_id(self, coordinator_id: int) -> TransactionCoordinatorStats:
        """Return the stats of a coordinator."""
        query = {"coordinatorId": coordinator_id}
        return await self._get(TransactionCoordinatorStats, f"{_ROOT}/coordinatorStats", query)

    async def get_coordinator_internal_stats(self, coordinator_id: int, *, metadata: bool = False) -> dict[str, Any]:
        """Return the ledger of a coordinator's log."""
        query = {"metadata": metadata}
        return await self._get(dict[str, Any], f"{_ROOT}/coordinatorInternalStats/{coordinator_id}", query)

    async def scale_transaction_coordinators(self, replicas: int) -> None:
        """Increase the number of coordinators to `replicas`."""
        await self._post(f"{_ROOT}/transactionCoordinator/replicas", replicas)

    # ---- transactions

    async def get_slow_transactions(
        self, timeout_ms: int, coordinator_id: int | None = None
    ) -> dict[str, TransactionMetadata]:
        """Return open transactions with a longer timeout by their ids, of all coordinators or of one."""
        query = {} if coordinator_id is None else {"coordinatorId": coordinator_id}
        return await self._get(dict[str, TransactionMetadata], f"{_ROOT}/slowTransactions/{timeout_ms}", query)

    async def get_transaction_metadata(self, most: int, least: int) -> TransactionMetadata:
        """Return the metadata of an open transaction."""
        return await self._get(TransactionMetadata, f"{_ROOT}/transactionMetadata/{most}/{least}")

    async def abort_transaction(self, most: int, least: int) -> None:
        """Abort a transaction of any client."""
        await self._post(f"{_ROOT}/abortTransaction/{most}/{least}")

    # ---- transaction buffers

    async def get_transaction_buffer_stats(
        self, topic: Topic, *, low_water_marks: bool = False, segment_stats: bool = False
    ) -> dict[str, Any]:
        """Return the open and aborted transactions of a topic."""
        query = {"lowWaterMarks": low_water_marks, "segmentStats": segment_stats}
        return await self._get(dict[str, Any], self._path("transactionBufferStats", topic), query)

    async def get_transaction_buffer_internal_stats(self, topic: Topic, *, metadata: bool = False) -> dict[str, Any]:
        """Return the ledgers of the transaction buffer's snapshots."""
        return await self._get(
            dict[str, Any], self._path("transactionBufferInternalStats", topic), {"metadata": metadata}
        )

    async def get_transaction_in_buffer_stats(self, most: int, least: int, topic: Topic) -> dict[str, Any]:
        """Return the state of one transaction on a topic."""
        return await self._get(dict[str, Any], f"{self._path('transactionInBufferStats', topic)}/{most}/{least}")

    # ---- pending acknowledgements

    async def get_pending_ack_stats(
        self, topic: Topic, subscription: str, *, low_water_marks: bool = False
    ) -> dict[str, Any]:
        """Return the pending acknowledgements of a subscription."""
        query = {"lowWaterMarks": low_water_marks}
        return await self._get(dict[str, Any], self._path("pendingAckStats", topic, subscription), query)

    async def get_pending_ack_internal_stats(
        self, topic: Topic, subscription: str, *, metadata: bool = False
    ) -> dict[str, Any]:
        """Return the ledger of the log of pending acknowledgements."""
        query = {"metadata": metadata}
        return await self._get(dict[str, Any], self._path("pendingAckInternalStats", topic, subscription), query)

    async def get_transaction_in_pending_ack_stats(
        self, most: int, least: int, topic: Topic, subscription: str
    ) -> dict[str, Any]:
        """Return the acknowledgements of one transaction on a subscription."""
        path = self._path("transactionInPendingAckStats", topic, subscription)
        return await self._get(dict[str, Any], f"{path}/{most}/{least}")

    async def get_position_stats_in_pending_ack(
        self, topic: Topic, subscription: str, ledger_id: int, entry_id: int, batch_index: int | None = None
    ) -> dict[str, Any]:
        """Return whether an entry, or a message of its batch, waits for the end of a transaction."""
        path = f"{self._path('positionStatsInPendingAck', topic, subscription)}/{ledger_id}/{entry_id}"
        return await self._get(dict[str, Any], path, {} if batch_index is None else {"batchIndex": batch_index})

    def _path(self, what: str, topic: Topic, subscription: str | None = None) -> str:
        name = self._name(topic)
        end = "" if subscription is None else f"/{twice(subscription)}"
        return f"{_ROOT}/{what}/{name.namespace_name}/{name.encoded_local_name}{end}"
