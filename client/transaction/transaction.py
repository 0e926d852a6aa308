"""Begin transactions, track their operations, and end them."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.lowlevel

from pulsarium.client.errors import (
    InvalidConfiguration,
    InvalidTxnStatusError,
    PulsarError,
    TransactionHasOperationFailed,
    TransactionNotFound,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.transaction.coordinator import Coordinator
from pulsarium.proto.message_id import TxnId

LAST_WORDS = 1.0  # seconds that the abort of a canceled block may take; after that, the transaction times out


_MOST_SECONDS = 2**53 / 1000  # a float counts milliseconds exactly up to 2**53


class TransactionState(enum.Enum):
    """The states of a transaction, as in Java clients."""

    OPEN = "open"
    """Messages can be sent and acknowledged in the transaction."""
    COMMITTING = "committing"
    """A commit is under way, or its answer was lost: `commit` may be called again."""
    ABORTING = "aborting"
    """An abort is under way, or its answer was lost: `abort` may be called again."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    ERROR = "error"
    """The coordinator does not know the transaction, or has it in another state."""
    TIME_OUT = "time out"
    """The timeout passed before the commit. The broker aborts the transaction."""


@dataclass(frozen=True, kw_only=True)
class TransactionOptions:
    """Options of `Client.transaction` and `Client.begin_transaction`: `timeout` in seconds."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not 0.001 <= self.timeout <= _MOST_SECONDS:
            raise InvalidConfiguration(f"the timeout of a transaction cannot be {self.timeout:g} s")

    @property
    def milliseconds(self) -> int:
        """Return the timeout in milliseconds, as the protocol has it."""
        return int(self.timeout * 1000)


class Transaction:
    """A transaction, made by `Client.transaction` or `Client.begin_transaction`.

    Its messages and acknowledgements take effect together when it is committed, and never if it is aborted.
    """

    def __init__(self, coordinator: Coordinator, txn_id: TxnId, timeout: float) -> None:
        """Track a transaction that has begun. It times out after `timeout` seconds."""
        self._coordinator = coordinator
        self._id = txn_id
        self._deadline = anyio.current_time() + timeout
        self._state = TransactionState.OPEN
        self._produced = TransactionParts()
        self._acknowledged = TransactionParts()
        self._on_abort: set[Callable[[], None]] = set()
        self._under_way = 0
        self._settled = anyio.Event()
        self._has_failed = False

    def id(self) -> TxnId:
        """Return the transaction's id, which is the same on all brokers."""
        return self._id

    def state(self) -> TransactionState:
        """Return the state of the transaction. An open transaction changes to TIME_OUT at its timeout."""
        if self._state is TransactionState.OPEN and anyio.current_time() >= self._deadline:
            self._state = TransactionState.TIME_OUT
        return self._state

    async def commit(self) -> None:
        """Commit the transaction, after its operations under way have finished.

        Raises:
            TransactionHasOperationFailed: An operation failed or was canceled. The transaction is aborted.
            InvalidTxnStatusError: The transaction is aborted already, or has timed out.
            TransactionNotFound: The transaction has timed out at the broker.
            ConnectError: The answer was lost, so the outcome is unknown. Call `commit` again.
            Timeout: The same, after `operation_timeout` seconds.
        """
        await anyio.lowlevel.checkpoint()
        await self._commit()

    async def _commit(self) -> None:
        self._begin_end(TransactionState.COMMITTING)
        await self._wait()
        if self._has_failed:
            with suppress(PulsarError):  # the transaction will time out
                await self._abort()
            raise TransactionHasOperationFailed(f"{self._id}: aborted, because an operation in it failed")
        await self._end(TransactionState.COMMITTED)

    async def abort(self) -> None:
        """Abort the transaction, after its operations under way have finished.

        Its messages are never delivered. The broker redelivers the messages that the transaction acknowledged.

        Raises:
            InvalidTxnStatusError: The transaction is committed already, or has timed out.
            TransactionNotFound: The transaction has timed out at the broker.
            ConnectError: The answer was lost, so the outcome is unknown. Call `abort` again.
            Timeout: The same, after `operation_timeout` seconds.
        """
        await anyio.lowlevel.checkpoint()
        self._begin_end(TransactionState.ABORTING)
        await self._wait()
        await self._abort()

    def __repr__(self) -> str:
        return f"<Transaction {self._id}: {self._state.value}>"

    # ---- for producers and consumers

    @contextmanager
    def _operation(self) -> Iterator[None]:
        """Count an operation under way, for which the end of the transaction waits.

        If the operation fails or is canceled, the transaction cannot be committed. Raise `InvalidTxnStatusError` when
        the transaction is not open.
        """
        self._expect(TransactionState.OPEN)
        self._under_way += 1
        try:
            yield
        except BaseException:
            self._has_failed = True
            raise
        finally:
            self._done()

    def _sending(self, receipt: Receipt) -> None:
        """Count a message as an operation under way, until its receipt is settled."""
        self._under_way += 1
        receipt.then(self._sent)

    async def _produces_to(self, topic: str) -> None:
        """Register a topic with the coordinator, once, before the first message is sent to the topic."""
        await self._produced.once(topic, lambda: self._coordinator.add_partition(self._id, topic))

    def _has_produced_to(self, topic: str) -> bool:
        """Return whether a topic is registered with the coordinator."""
        return topic in self._produced

    @property
    def _is_scalable(self) -> bool:
        """Return whether the transaction is for scalable topics."""
        return self._coordinator.is_scalable

    async def _acknowledges_on(self, topic: str, subscription: str) -> None:
        """Register a subscription with the coordinator, once, before the first acknowledgement on the subscription."""
        await self._acknowledged.once(
            (topic, subscription), lambda: self._coordinator.add_subscription(self._id, topic, subscription)
        )

    def _when_aborted(self, tell: Callable[[], None]) -> None:
        """Call `tell`, once, when the transaction is aborted."""
        self._on_abort.add(tell)

    # ---- its own

    def _expect(self, *states: TransactionState) -> None:
        if self.state() not in states:
            raise InvalidTxnStatusError(f"{self._id} is {self._state.name}, not {states[0].name}")

    def _begin_end(self, state: TransactionState) -> None:
        self._expect(TransactionState.OPEN, state)
        self._state = state

    async def _wait(self) -> None:
        """Wait for the operations under way. Raise `InvalidTxnStatusError` at the timeout, when the broker aborts."""
        with anyio.CancelScope(deadline=self._deadline):
            while self._under_way:
                self._settled = anyio.Event()
                await self._settled.wait()
        if self._under_way:
            self._state = TransactionState.TIME_OUT
            raise InvalidTxnStatusError(f"{self._id} timed out with {self._under_way} operations under way")

    async def _abort(self) -> None:
        await self._end(TransactionState.ABORTED)
        for tell in self._on_abort:
            tell()

    async def _end(self, state: TransactionState) -> None:
        try:
            await self._coordinator.end(self._id, commit=state is TransactionState.COMMITTED)
        except (InvalidTxnStatusError, TransactionNotFound):
            self._state = TransactionState.ERROR
            raise
        self._state = state

    def _sent(self, message_id: MessageId | None, error: PulsarError | None) -> None:
        self._has_failed |= error is not None
        self._done()

    def _done(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._settled.set()


class TransactionParts:
    """Topics or subscriptions that are registered with a transaction's coordinator."""

    def __init__(self) -> None:
        self._made: set[Hashable] = set()
        self._making: dict[Hashable, anyio.Lock] = {}

    def __contains__(self, what: Hashable) -> bool:
        return what in self._made

    async def once(self, what: Hashable, register: Callable[[], Awaitable[object]]) -> None:
        """Return when `what` is registered. Concurrent callers return in the order of their calls."""
        if what in self._made and what not in self._making:
            return
        lock = self._making.setdefault(what, anyio.Lock())
        try:
            async with lock:
                if what not in self._made:
                    await register()
                    self._made.add(what)
        finally:
            if not lock.locked():  # no other caller waits
                self._making.pop(what, None)


class Coordinators(Protocol):
    """Choose the coordinator of each new transaction."""

    async def next(self) -> Coordinator:
        """Return the coordinator of the next transaction."""
        ...


async def begin(coordinators: Coordinators, options: TransactionOptions) -> Transaction:
    """Begin a transaction at the next coordinator."""
    coordinator = await coordinators.next()
    return Transaction(coordinator, await coordinator.new_transaction(options.milliseconds), options.timeout)


@asynccontextmanager
async def transaction(coordinators: Coordinators, options: TransactionOptions) -> AsyncIterator[Transaction]:
    """Begin a transaction, and commit it at the end of the block, unless the block has ended it.

    Abort on an exception.
    """
    txn = await begin(coordinators, options)
    try:
        yield txn
        if txn.state() in _UNDECIDED:
            await anyio.lowlevel.checkpoint()
    except Exception:
        with suppress(PulsarError):  # the block's exception matters; the transaction will time out
            await txn.abort()
        raise
    except BaseException:
        with anyio.move_on_after(LAST_WORDS, shield=True), suppress(PulsarError):
            await txn.abort()
        raise
    if txn.state() in _UNDECIDED:
        await txn._commit()


_UNDECIDED = frozenset({TransactionState.OPEN, TransactionState.COMMITTING, TransactionState.TIME_OUT})
