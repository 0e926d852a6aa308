"""`pulsarium admin transactions`."""

from __future__ import annotations

from typing import Any

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, option
from pulsarium.cli.admin.output import pairs, value
from pulsarium.cli.admin.values import INT, LONG, MILLISECONDS, TOPIC
from pulsarium.rest.transactions import Transactions

transactions = CommandsOf(Transactions)

COORDINATOR = option("--coordinator-id", "-c", type=INT, help="Number of one coordinator. Default: all.")
THE_COORDINATOR = option("--coordinator-id", "-c", type=INT, required=True, help="Number of the coordinator.")
MOST = option(
    "--most-sig-bits", "-m", dest="most", type=LONG, required=True, help="Number of the transaction's coordinator."
)
LEAST = option(
    "--least-sig-bits",
    "-l",
    dest="least",
    type=LONG,
    required=True,
    help="Number of the transaction at its coordinator.",
)
OF_TOPIC = option("--topic", "-t", type=TOPIC, required=True, help="The topic.")
SUB_NAME = option("--sub-name", "-s", dest="subscription", required=True, help="The subscription.")
SUBSCRIPTION = option("--subscription-name", "-s", dest="subscription", required=True, help="The subscription.")
of_topic = CommandsOf(Transactions, OF_TOPIC)
acks_of = CommandsOf(Transactions, OF_TOPIC, SUB_NAME)
pending_of = CommandsOf(Transactions, OF_TOPIC, SUBSCRIPTION)
of_transaction = CommandsOf(Transactions, MOST, LEAST)
METADATA = option("--metadata", "-m", flag=True, help="Show the metadata of ledgers too.")
LOW_WATER_MARK = option(
    "--low-water-mark", "-l", dest="low_water_marks", flag=True, help="Show the low-water marks too."
)


async def _stats(api: Api, values: Values) -> Any:
    if values.coordinator_id is None:
        return await Transactions(api).get_coordinator_stats()
    return await Transactions(api).get_coordinator_stats_by_id(values.coordinator_id)


def _coordinators(data: Any, values: Values) -> str:
    return pairs({each["id"]: each["brokerServiceUrl"] for each in data})


_ROWS = (
    transactions.shows(
        "coordinators-list",
        Transactions.list_transaction_coordinators,
        "List the coordinators and the brokers that serve them.",
        show=_coordinators,
    ),
    AdminCommand(
        "coordinator-stats", "Show the number of transactions of coordinators.", _stats, (COORDINATOR,), value
    ),
    transactions.shows(
        "coordinator-internal-stats",
        Transactions.get_coordinator_internal_stats,
        "Show the ledger of a coordinator's log.",
        THE_COORDINATOR,
        METADATA,
    ),
    transactions.does(
        "scale-transactionCoordinators",
        Transactions.scale_transaction_coordinators,
        "Raise the number of coordinators.",
        option("--replicas", "-r", type=INT, default=0, help="The new number of coordinators."),
        example="--replicas 4",
    ),
    transactions.shows(
        "slow-transactions",
        Transactions.get_slow_transactions,
        "List open transactions whose timeout is longer than --time.",
        COORDINATOR,
        option(
            "--time",
            "-t",
            dest="timeout_ms",
            type=MILLISECONDS,
            required=True,
            help="The least timeout of a listed transaction, such as 10s or 5m.",
        ),
        example="--time 10m",
    ),
    of_transaction.shows(
        "transaction-metadata",
        Transactions.get_transaction_metadata,
        "Show an open transaction.",
        example="-m 0 -l 12",
    ),
    of_transaction.does("abort-transaction", Transactions.abort_transaction, "Abort a transaction of any owner."),
    of_topic.shows(
        "transaction-buffer-stats",
        Transactions.get_transaction_buffer_stats,
        "Show the open and aborted transactions of a topic.",
        LOW_WATER_MARK,
        option("--segment-stats", "-s", flag=True, help="Show the segments of its snapshot too."),
    ),
    of_topic.shows(
        "buffer-snapshot-internal-stats",
        Transactions.get_transaction_buffer_internal_stats,
        "Show the ledgers of a topic's snapshots.",
        METADATA,
    ),
    of_transaction.shows(
        "transaction-in-buffer-stats",
        Transactions.get_transaction_in_buffer_stats,
        "Show the state of a transaction on a topic.",
        OF_TOPIC,
    ),
    acks_of.shows(
        "pending-ack-stats",
        Transactions.get_pending_ack_stats,
        "Show the open transactions of a subscription.",
        LOW_WATER_MARK,
    ),
    pending_of.shows(
        "pending-ack-internal-stats",
        Transactions.get_pending_ack_internal_stats,
        "Show the ledger of a subscription's pending acknowledgements.",
        METADATA,
    ),
    of_transaction.shows(
        "transaction-in-pending-ack-stats",
        Transactions.get_transaction_in_pending_ack_stats,
        "Show a transaction's acknowledgements on a subscription.",
        OF_TOPIC,
        SUB_NAME,
    ),
    pending_of.shows(
        "position-stats-in-pending-ack",
        Transactions.get_position_stats_in_pending_ack,
        "Show whether a transaction holds a message's acknowledgement.",
        option("--ledger-id", "-l", type=LONG, required=True, help="Ledger id of the message."),
        option("--entry-id", "-e", type=LONG, required=True, help="Entry id of the message."),
        option("--batch-index", "-b", type=INT, help="Batch index of the message."),
    ),
)

GROUPS = {
    "transactions": CommandGroup(
        _ROWS, examples=("transactions coordinators-list", "transactions slow-transactions --time 10m")
    )
}
