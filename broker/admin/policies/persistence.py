"""/admin/v2: how many bookies keep a message, of namespaces and of topics. Kept and shown; there are none here."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Json, NamespacePolicy, TopicPolicy
from pulsarium.broker.admin.policies.values import DATA, DOUBLE, INT, TEXT, record
from pulsarium.broker.config.keys import Config
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError

NAME = "PERSISTENCE"
WHAT = "How many bookies keep a message, and how often acknowledgements are kept"
MOST = 5  # managedLedgerMaxEnsembleSize, managedLedgerMaxWriteQuorum, managedLedgerMaxAckQuorum
MARK_DELETE_RATE = 0.1  # managedLedgerDefaultMarkDeleteRateLimit of Pulsar, where acknowledgements are not kept at once
PARTS = {"Ensemble": "bookkeeperEnsemble", "WriteQuorum": "bookkeeperWriteQuorum", "AckQuorum": "bookkeeperAckQuorum"}
RATE = "managedLedgerMaxMarkDeleteRate"

PERSISTENCE = record(
    f"{DATA}.PersistencePolicies",
    {**dict.fromkeys(PARTS.values(), INT), RATE: DOUBLE, "managedLedgerStorageClassName": TEXT},
    {**dict.fromkeys(PARTS.values(), 2), RATE: -1.0},
)


def check_persistence(call: Call, kept: Json, value: Any) -> None:
    """Refuse numbers of bookies that Pulsar would not have."""
    if value is None:
        raise AdminError(400, "persistence policies should not be null")
    numbers = {word: value[name] for word, name in PARTS.items()}
    for word, number in numbers.items():
        if not 0 < number <= MOST:
            raise AdminError(400, f"Bookkeeper-{word} must be <= {MOST} and > 0.")
    if list(numbers.values()) != sorted(numbers.values(), reverse=True):
        raise AdminError(400, "Bookkeeper " + " >= ".join(f"{word} ({number})" for word, number in numbers.items()))


def one_bookie(config: Config) -> Json:
    """The broker's own."""
    rate = config.managedLedgerDefaultMarkDeleteRateLimit
    return {**dict.fromkeys(PARTS.values(), 1), RATE: MARK_DELETE_RATE if rate is None else rate}


NAMESPACE_PERSISTENCE = (NamespacePolicy("persistence", "persistence", NAME, WHAT, PERSISTENCE, check_persistence),)
TOPIC_PERSISTENCE = (
    TopicPolicy("persistence", "persistence", NAME, WHAT, PERSISTENCE, check_persistence, default=one_bookie),
)
