"""/admin/v3/transactions: transaction coordinators and their transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import trio

from pulsarium.broker.auth.authorization import of_topic
from pulsarium.broker.auth.needs import ANYBODY, topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.keys import MOST_BUNDLES
from pulsarium.broker.jackson.kinds import INT
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    CoordinatorNotFoundError,
    InvalidTxnStatusError,
    TransactionNotFoundError,
)
from pulsarium.broker.model.transaction.coordinator import Coordinator
from pulsarium.broker.model.transaction.coordinators import ASSIGN, Coordinators
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.topic.internal_stats import NOTHING_STORED
from pulsarium.broker.web.admin.transactions.on_topics import check_enabled, metadata_of
from pulsarium.broker.web.http.call import Call, number_in
from pulsarium.broker.web.http.errors import AdminError, request_failed, unexpected_body
from pulsarium.broker.web.http.owner import redirect
from pulsarium.broker.web.http.permission import check_target
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.numbers import parse_number
from pulsarium.proto.special_names import COORDINATOR_LOG, SYSTEM

ROOT = "/admin/v3/transactions"
NOT_FOUND = "Transaction coordinator not found! coordinator id : {}"
TOO_FEW = "Number of transaction coordinators should be more than the current number of transaction coordinator"
MOST_COORDINATORS = MOST_BUNDLES
LOG = SYSTEM + "/persistent/" + COORDINATOR_LOG + "{}"
LOOKUP = topic_operation("LOOKUP")  # on ASSIGN: Pulsar's check for reading about all coordinators
READING = topic_operation("LOOKUP", unasked=True)  # the same check for reading about one
Json = dict[str, Any]


@route("GET", f"{ROOT}/coordinators", needs=ANYBODY, first=check_enabled)
async def list_coordinators(call: Call) -> HttpReply:
    """Return all coordinators, each with its present or future broker."""
    _check_reader(call)
    found: list[Json] = []
    slice_ = Slice()
    for number in range(_all(call).count):
        found.append({"id": number, "brokerServiceUrl": _url(_owner(call.broker, number))})
        await slice_.pause()
    return json_reply(found)


def _owner(broker: Broker, number: int) -> Broker:
    """Return the broker that clients find for a coordinator."""
    ownership = broker.cluster.ownership
    found = ownership.find(ownership.leader, ASSIGN.partition(number), authoritative=False)
    if found is None:
        raise AdminError(404, "Namespace not found")
    if found.redirect:
        ownership.find(found.broker, ASSIGN.partition(number), authoritative=True)
    return found.broker


def _url(broker: Broker) -> str:
    listener = broker.listener()
    return "" if listener is None else listener.pulsar


# one, or all


@route("GET", f"{ROOT}/coordinatorStats", needs=ANYBODY, first=check_enabled)
def get_coordinator_stats(call: Call) -> HttpReply:
    """Return the stats of all coordinators, or of ?coordinatorId=."""
    asked = _asked(call)
    if not isinstance(asked, Mapping):
        return asked if isinstance(asked, HttpReply) else json_reply(stats_of(asked))
    return json_reply({str(number): stats_of(each) for number, each in asked.items()})


def stats_of(coordinator: Coordinator) -> Json:
    """Return TransactionCoordinatorStats of Pulsar's admin client."""
    return {
        "state": "Ready",
        "leastSigBits": coordinator.last,
        "lowWaterMark": coordinator.low_watermark,
        "ongoingTxnSize": coordinator.active,
        "recoverStartTime": coordinator.opened_ms,
        "recoverEndTime": coordinator.opened_ms,
    }


@route("GET", f"{ROOT}/slowTransactions/{{timeout}}", needs=ANYBODY, first=check_enabled)
async def get_slow_transactions(call: Call) -> HttpReply:
    """Return open transactions with a longer timeout than `timeout` milliseconds, of all coordinators or of one."""
    timeout_ms = _number(call, "timeout")
    asked = _asked(call)
    if isinstance(asked, HttpReply):
        return asked
    found: Json = {}
    slice_ = Slice()
    for coordinator in asked.values() if isinstance(asked, Mapping) else (asked,):
        for each in list(coordinator.transactions):
            if each.timeout_ms > timeout_ms:
                metadata = await metadata_of(call.broker.topics, coordinator.number, each, slice_)
                found[metadata["txnId"]] = metadata
            await slice_.pause()
    return json_reply(found)


def _asked(call: Call) -> Coordinator | Mapping[int, Coordinator] | HttpReply:
    """Return the coordinator of ?coordinatorId=, or the redirect to the broker that serves it, or all coordinators."""
    asked = call.query.get("coordinatorId")
    if asked is not None:
        _check_reader(call)
        number = number_in(asked, bits=32)
        return _moved(call, number) or _open(call, number)
    check_target(call, LOOKUP, of_topic(ASSIGN))
    found: dict[int, Coordinator] = {}
    for number in range(_all(call).count):
        coordinator = _all(call).anywhere(number)
        if coordinator is None:
            text = NOT_FOUND.format(number)
            java = "org.apache.pulsar.client.admin.PulsarAdminException$NotFoundException"
            raise unexpected_body(f"{java}: {text}", AdminError(404, text))
        found[number] = coordinator
    return found


@route("GET", f"{ROOT}/coordinatorInternalStats/{{coordinatorId}}", needs=ANYBODY, first=check_enabled)
def get_coordinator_internal_stats(call: Call) -> HttpReply:
    """Return the ledger of a coordinator's log. It is empty, because the metadata has the transactions."""
    _check_reader(call)
    number = _number(call, "coordinatorId", bits=32)
    moved = _moved(call, number)
    if moved is not None:
        return moved
    stored = {
        "entriesAddedCounter": 0,
        **NOTHING_STORED,
        "state": "LedgerOpened",
        "ledgers": [],
        "cursors": {},
        "properties": {},
    }
    name = LOG.format(_open(call, number).number)
    return json_reply({"transactionLogStats": {"managedLedgerName": name, "managedLedgerInternalStats": stored}})


# transactions


@route("GET", f"{ROOT}/transactionMetadata/{{mostSigBits}}/{{leastSigBits}}", needs=ANYBODY, first=check_enabled)
async def get_transaction_metadata(call: Call) -> HttpReply:
    """Return an open transaction: its state, topics and subscriptions."""
    number, least = _number(call, "mostSigBits", bits=32), _number(call, "leastSigBits")
    moved = _moved(call, number)
    if moved is not None:
        return moved
    try:
        transaction = _all(call).served(number, call.broker).transaction(least)
    except (CoordinatorNotFoundError, TransactionNotFoundError) as error:
        _check_reader(call)
        raise AdminError(404, error.text) from None
    if transaction.owner is None or transaction.owner != str(call.principal):
        _check_reader(call)
    return json_reply(await metadata_of(call.broker.topics, number, transaction, Slice()))


@route("POST", f"{ROOT}/abortTransaction/{{mostSigBits}}/{{leastSigBits}}", first=check_enabled)
def abort_transaction(call: Call) -> HttpReply | Awaitable[HttpReply]:
    """Abort a transaction of any client. Topics that cannot end it now do so later."""
    number, least = (_parsed(call, name) for name in ("mostSigBits", "leastSigBits"))
    if not 0 <= number < 2**31:
        raise unexpected_body("mostSigBits out of bounds")
    moved = _moved(call, number)
    if moved is not None:
        return moved
    try:
        coordinator = _all(call).served(number, call.broker)
        coordinator.end(least, commit=False, done=lambda error: None)
    except (CoordinatorNotFoundError, TransactionNotFoundError) as error:
        raise unexpected_body(error.text, AdminError(404, error.text)) from None
    except InvalidTxnStatusError as error:
        raise unexpected_body(error.text, AdminError(409, error.text)) from None
    return _when_tried(coordinator, least) if coordinator.is_ending(least) else done()


async def _when_tried(coordinator: Coordinator, least: int) -> HttpReply:
    """Answer when the end of a transaction was tried everywhere, which takes several turns."""
    tried = trio.Event()
    coordinator.after_try(least, tried.set)
    await tried.wait()
    return done()


@route("POST", f"{ROOT}/transactionCoordinator/replicas", first=check_enabled)
def scale_coordinators(call: Call) -> HttpReply:
    """Increase the number of coordinators. It can never decrease."""
    replicas = call.read(INT)
    if replicas <= _all(call).count:
        raise AdminError(406, TOO_FEW)
    if replicas > MOST_COORDINATORS:
        raise AdminError(406, f"Number of transaction coordinators should be at most {MOST_COORDINATORS}")
    call.broker.metadata.put_partitioned(ASSIGN, replicas)
    return done()


# helpers


def _check_reader(call: Call) -> None:
    """Raise `AdminError` when the role may not look a coordinator up."""
    check_target(call, READING, of_topic(ASSIGN))


def _all(call: Call) -> Coordinators[Broker]:
    coordinators = call.broker.cluster.coordinators
    assert coordinators is not None  # check_enabled
    return coordinators


def _moved(call: Call, number: int) -> HttpReply | None:
    """Return the redirect to the broker that serves a coordinator, or None if this broker does."""
    broker, ownership = call.broker, call.broker.cluster.ownership
    found = ownership.find(broker, ASSIGN.partition(number), authoritative=call.flag("authoritative"))
    if found is None:
        raise AdminError(404, "Namespace not found")
    if found.broker is broker:
        return None
    return redirect(call, found.broker, authoritative=broker is ownership.leader)


def _open(call: Call, number: int) -> Coordinator:
    try:
        return _all(call).served(number, call.broker)
    except BrokerServiceError:
        raise AdminError(404, NOT_FOUND.format(number)) from None


def _number(call: Call, name: str, bits: int = 64, refusal: Exception | None = None) -> int:
    """Return a number of the path, which Pulsar parses by hand.

    Raise `refusal`, or Pulsar's own 500, for another text.
    """
    number = parse_number(call.parameter(name), bits)
    if number is None:
        raise refusal or request_failed()
    return number


def _parsed(call: Call, name: str) -> int:
    """Return a number of the path. Raise an error that quotes any other text."""
    return _number(call, name, refusal=unexpected_body(f'For input string: "{call.parameter(name)}"'))
