"""Begin a transaction, know what belongs to it, and end it."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

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
from pulsarium.client.transaction.coordinator import Coordinator, Coordinators
from pulsarium.proto.message_id import TxnId

LAST_WORDS = 1.0  # seconds that the abort of a cancelled block may take; after that it is left to the timeout


_MOST_SECONDS = 2**53 / 1000  # the protocol has room for as many milliseconds, and a float counts them


class TransactionState(enum.Enum):
    """As Java clients have them."""

    OPEN = "open"
    """Messages can be sent and acknowledged in it."""
    COMMITTING = "committing"
    """Nobody knows yet whether it is committed: `commit` may be called again."""
    ABORTING = "aborting"
    """The same of `abort`."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    ERROR = "error"
    """The coordinator does not know it, or not in this state."""
    TIME_OUT = "time out"
    """Its time was over before it was committed: the broker aborts it."""


@dataclass(frozen=True, kw_only=True)
class TransactionOptions:
    """What `transaction` and `begin_transaction` take."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not 0.001 <= self.timeout <= _MOST_SECONDS:
            raise InvalidConfiguration(f"a transaction cannot have {self.timeout:g} s")

    @property
    def milliseconds(self) -> int:
        """As the protocol counts."""
        return int(self.timeout * 1000)


class Transaction:
    """Made by `Client.transaction` or `Client.begin_transaction`.

    What is sent and acknowledged in it shows when it is committed, all at once, and never if it is aborted.
    """

    def __init__(self, coordinator: Coordinator, txn_id: TxnId, timeout: float) -> None:
        """It has begun, and has so many seconds."""
        self._coordinator = coordinator
        self._id = txn_id
        self._deadline = anyio.current_time() + timeout
        self._state = TransactionState.OPEN
        self._produced = Registrations()
        self._acknowledged = Registrations()
        self._on_abort: set[Callable[[], None]] = set()
        self._under_way = 0
        self._settled = anyio.Event()
        self._has_failed = False

    def id(self) -> TxnId:
        """Who it is, on all brokers."""
        return self._id

    def state(self) -> TransactionState:
        """How far it got."""
        if self._state is TransactionState.OPEN and anyio.current_time() >= self._deadline:
            self._state = TransactionState.TIME_OUT
        return self._state

    async def commit(self) -> None:
        """Let everything in it be seen, once what is under way is done.

        TransactionHasOperationFailed if any of that failed, or was cancelled: then all of it is aborted.
        InvalidTxnStatusError after `abort` or its timeout; TransactionNotFound if it timed out at the broker.
        ConnectError or Timeout where nobody knows: the next call asks again.
        """
        await anyio.lowlevel.checkpoint()
        await self._commit()

    async def _commit(self) -> None:
        self._begin_end(TransactionState.COMMITTING)
        await self._wait()
        if self._has_failed:
            with suppress(PulsarError):  # it will time out
                await self._abort()
            raise TransactionHasOperationFailed(f"{self._id}: something sent or acknowledged in it had failed")
        await self._end(TransactionState.COMMITTED)

    async def abort(self) -> None:
        """Let nothing of it be seen, once what is under way is done; what was acknowledged in it is delivered again.

        Raises as `commit`.
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
        """Something in it, for which its end waits; if that fails or is cancelled, it cannot be committed.

        InvalidTxnStatusError if it is not open.
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
        """The same for a message on its way."""
        self._under_way += 1
        receipt.then(self._sent)

    async def _produces_to(self, topic: str) -> None:
        """Tell the coordinator, once, before anything is sent there. In the order of the calls."""
        await self._produced.once(topic, lambda: self._coordinator.add_partition(self._id, topic))

    async def _acknowledges_on(self, topic: str, subscription: str) -> None:
        """The same before anything is acknowledged there."""
        await self._acknowledged.once(
            (topic, subscription), lambda: self._coordinator.add_subscription(self._id, topic, subscription)
        )

    def _when_aborted(self, tell: Callable[[], None]) -> None:
        """Call this, once, when it is aborted."""
        self._on_abort.add(tell)

    # ---- its own

    def _expect(self, *states: TransactionState) -> None:
        if self.state() not in states:
            raise InvalidTxnStatusError(f"{self._id} is {self._state.name}, not {states[0].name}")

    def _begin_end(self, state: TransactionState) -> None:
        self._expect(TransactionState.OPEN, state)
        self._state = state

    async def _wait(self) -> None:
        """Until nothing is under way; after its time the broker has aborted it."""
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


class Registrations:
    """Of topics, or of subscriptions."""

    def __init__(self) -> None:
        self._made: set[Hashable] = set()
        self._making: dict[Hashable, anyio.Lock] = {}

    async def once(self, what: Hashable, register: Callable[[], Awaitable[object]]) -> None:
        """Return when it is registered; callers at the same time return in the order of their calls."""
        if what in self._made and what not in self._making:
            return
        lock = self._making.setdefault(what, anyio.Lock())
        try:
            async with lock:
                if what not in self._made:
                    await register()
                    self._made.add(what)
        finally:
            if not lock.locked():  # the last of them
                self._making.pop(what, None)


async def begin(coordinators: Coordinators, options: TransactionOptions) -> Transaction:
    """A new one, at the coordinator whose turn it is."""
    coordinator = await coordinators.next()
    return Transaction(coordinator, await coordinator.new_transaction(options.milliseconds), options.timeout)


@asynccontextmanager
async def transaction(coordinators: Coordinators, options: TransactionOptions) -> AsyncIterator[Transaction]:
    """A new one that is committed at the end of the block, unless it has ended there, and aborted by an exception."""
    txn = await begin(coordinators, options)
    try:
        yield txn
        if txn.state() in _UNDECIDED:
            await anyio.lowlevel.checkpoint()
    except Exception:
        with suppress(PulsarError):  # the block's own is what matters; it will time out
            await txn.abort()
        raise
    except BaseException:
        with anyio.move_on_after(LAST_WORDS, shield=True), suppress(PulsarError):
            await txn.abort()
        raise
    if txn.state() in _UNDECIDED:
        await txn._commit()


_UNDECIDED = frozenset({TransactionState.OPEN, TransactionState.COMMITTING, TransactionState.TIME_OUT})
