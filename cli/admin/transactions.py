"""`pulsarium admin transactions`."""

from __future__ import annotations

from typing import Any

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, Group, Values, does, option, shows
from pulsarium.cli.admin.output import pairs, value
from pulsarium.cli.admin.values import INT, LONG, MILLISECONDS, TOPIC

COORDINATOR = option("--coordinator-id", "-c", type=INT, help="Number of one coordinator; all of them if not given.")
THE_COORDINATOR = option("--coordinator-id", "-c", type=INT, required=True, help="Number of the coordinator.")
MOST = option("--most-sig-bits", "-m", type=LONG, required=True, help="Number of the transaction's coordinator.")
LEAST = option("--least-sig-bits", "-l", type=LONG, required=True, help="Its own number there.")
OF_TOPIC = option("--topic", "-t", type=TOPIC, required=True, help="The topic.")
SUB_NAME = option("--sub-name", "-s", required=True, help="The subscription.")
SUBSCRIPTION = option("--subscription-name", "-s", required=True, help="The subscription.")
METADATA = option("--metadata", "-m", flag=True, help="Show the metadata of ledgers too.")
LOW_WATER_MARK = option("--low-water-mark", "-l", flag=True, help="Show the low-water marks too.")


async def _stats(api: Api, values: Values) -> Any:
    if values.coordinator_id is None:
        return await api.transactions.get_coordinator_stats()
    return await api.transactions.get_coordinator_stats_by_id(values.coordinator_id)


def _coordinators(data: Any, values: Values) -> str:
    return pairs({each["id"]: each["brokerServiceUrl"] for each in data})


GROUP = Group(
    "transactions",
    "Transactions: their coordinators, what they published, what they acknowledged.",
    (
        shows(
            "coordinators-list",
            lambda api, v: api.transactions.list_transaction_coordinators(),
            "List the coordinators and the brokers that serve them.",
            show=_coordinators,
        ),
        Command("coordinator-stats", "Show how many transactions coordinators have.", _stats, (COORDINATOR,), value),
        shows(
            "coordinator-internal-stats",
            lambda api, v: api.transactions.get_coordinator_internal_stats(v.coordinator_id, metadata=v.metadata),
            "Show the ledger of a coordinator's log.",
            THE_COORDINATOR,
            METADATA,
        ),
        does(
            "scale-transactionCoordinators",
            lambda api, v: api.transactions.scale_transaction_coordinators(v.replicas),
            "Have more coordinators.",
            option("--replicas", "-r", type=INT, default=0, help="How many."),
            example="--replicas 4",
        ),
        shows(
            "slow-transactions",
            lambda api, v: api.transactions.get_slow_transactions(v.time, v.coordinator_id),
            "List open transactions that have more time than that.",
            COORDINATOR,
            option("--time", "-t", type=MILLISECONDS, required=True, help="How much, like 10s or 5m."),
            example="--time 10m",
        ),
        shows(
            "transaction-metadata",
            lambda api, v: api.transactions.get_transaction_metadata(v.most_sig_bits, v.least_sig_bits),
            "Show a transaction that is not over.",
            MOST,
            LEAST,
            example="-m 0 -l 12",
        ),
        does(
            "abort-transaction",
            lambda api, v: api.transactions.abort_transaction(v.most_sig_bits, v.least_sig_bits),
            "Abort a transaction, whoever's it is.",
            MOST,
            LEAST,
        ),
        shows(
            "transaction-buffer-stats",
            lambda api, v: api.transactions.get_transaction_buffer_stats(
                v.topic, low_water_marks=v.low_water_mark, segment_stats=v.segment_stats
            ),
            "Show what a topic has of open and aborted transactions.",
            OF_TOPIC,
            LOW_WATER_MARK,
            option("--segment-stats", "-s", flag=True, help="Show the segments of its snapshot too."),
        ),
        shows(
            "buffer-snapshot-internal-stats",
            lambda api, v: api.transactions.get_transaction_buffer_internal_stats(v.topic, metadata=v.metadata),
            "Show the ledgers of a topic's snapshots.",
            OF_TOPIC,
            METADATA,
        ),
        shows(
            "transaction-in-buffer-stats",
            lambda api, v: api.transactions.get_transaction_in_buffer_stats(v.most_sig_bits, v.least_sig_bits, v.topic),
            "Show what became of a transaction on a topic.",
            MOST,
            LEAST,
            OF_TOPIC,
        ),
        shows(
            "pending-ack-stats",
            lambda api, v: api.transactions.get_pending_ack_stats(
                v.topic, v.sub_name, low_water_marks=v.low_water_mark
            ),
            "Show what a subscription has of open transactions.",
            OF_TOPIC,
            SUB_NAME,
            LOW_WATER_MARK,
        ),
        shows(
            "pending-ack-internal-stats",
            lambda api, v: api.transactions.get_pending_ack_internal_stats(
                v.topic, v.subscription_name, metadata=v.metadata
            ),
            "Show the ledger of a subscription's pending acknowledgements.",
            OF_TOPIC,
            SUBSCRIPTION,
            METADATA,
        ),
        shows(
            "transaction-in-pending-ack-stats",
            lambda api, v: api.transactions.get_transaction_in_pending_ack_stats(
                v.most_sig_bits, v.least_sig_bits, v.topic, v.sub_name
            ),
            "Show what a transaction acknowledged on a subscription.",
            MOST,
            LEAST,
            OF_TOPIC,
            SUB_NAME,
        ),
        shows(
            "position-stats-in-pending-ack",
            lambda api, v: api.transactions.get_position_stats_in_pending_ack(
                v.topic, v.subscription_name, v.ledger_id, v.entry_id, v.batch_index
            ),
            "Show whether a message waits for the end of a transaction.",
            OF_TOPIC,
            SUBSCRIPTION,
            option("--ledger-id", "-l", type=LONG, required=True, help="Ledger of its id."),
            option("--entry-id", "-e", type=LONG, required=True, help="Entry of its id."),
            option("--batch-index", "-b", type=INT, help="Its place in a batch."),
        ),
    ),
    examples=("transactions coordinators-list", "transactions slow-transactions --time 10m"),
)
