"""Runs scenarios of the kit with clients that pass them all, or fail some for a known reason.

Ours and the official clients of Python, Java and Go run every scenario that they know, and the others a part, which CI
has the time for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from pulsarium.conformance.run import BROKEN_RULE, Runner, Verdict
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import our_brokers
from tests.foreign.kit import ready

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

pytestmark = pytest.mark.heavy


CLASSIC: Final = [each.name for each in SCENARIOS.values() if each.topics == "classic"]


@dataclass(frozen=True, eq=False)
class KnownClient:
    """A client, the scenarios that it runs here, and those that it fails, with the reasons.

    rules: rules of the linter that the client may break by chance.
    """

    name: str
    scenarios: Sequence[str]
    profile: str = "pulsar-5.0"
    failures: Mapping[str, str] = field(default_factory=dict)
    rules: frozenset[str] = frozenset()
    brokers: int = 2


NO_VERSION: Final = "names no schema version outside of batches"
PYTHON_FAILURES: Final = {
    "a-compacted-batch-has-the-newest-of-each-key": "shows removed messages as empty ones",
    "a-negatively-acknowledged-message-in-chunks-comes-again": "asks for the last chunk alone",
    "repeated-batches-are-dropped": "counts batches in place of messages, and does not tell the id of the last one",
}
NO_TRANSACTION: Final = "names the transaction in SEND, and not in the message, so that the broker does not hide it"
GO_FAILURES: Final = {
    "a-closed-client-opens-nothing": "a closed client opens producers",
    "a-compacted-batch-has-the-newest-of-each-key": "shows removed messages as empty ones",
    "a-latest-reader-has-no-message-available": "remembers that nothing was available",
    "a-producer-that-comes-back-knows-its-last-sequence-id": "does not tell the id of PRODUCER_SUCCESS",
    "a-producer-without-a-key-is-refused": "does not tell the broker that it encrypts",
    "a-reader-begins-with-a-message-in-chunks": "begins with the last chunk",
    "a-seek-to-the-earliest-message": "refuses the id of the earliest message",
    "a-seek-to-the-latest-message": "refuses the id of the latest message",
    "a-value-of-schema-avro": NO_VERSION,
    "a-value-of-schema-json": NO_VERSION,
    "a-value-of-schema-text": NO_VERSION,
    "an-aborted-transaction-is-not-delivered": NO_TRANSACTION,
    "an-empty-message-is-a-message": "takes an empty message outside of batches for a broken batch",
    "the-dead-letter-topic-has-a-name-by-default": "demands the name of the topic",
    "transactions-acknowledge-single-messages-of-a-batch": "acknowledges the whole batch in the first transaction",
    "transactions-outlive-an-unload": NO_TRANSACTION,
}
RUST_FAILURES: Final = {
    "a-batch-comes-back-as-a-whole": "acknowledges the whole batch with one of its messages",
    "a-batch-compressed-with-snappy": "uses another format of Snappy",
    "a-closed-consumer-receives-nothing": "a closed consumer waits",
    "a-closed-producer-publishes-nothing": "a closed producer publishes",
    "a-compacted-batch-has-the-newest-of-each-key": "shows removed messages as empty ones",
    "a-message-compressed-with-snappy": "uses another format of Snappy",
    "a-message-goes-to-the-dead-letter-topic": "sends no dead letter",
    "a-message-that-is-too-large-is-refused": "the message was accepted",
    "a-reader-goes-on-after-an-unload": "begins anew",
    "a-reader-reads-all-partitions": "refuses a reader of several partitions",
    "a-seek-into-a-batch": "shows the messages of the batch before",
    "key-shared-refuses-cumulative-acknowledgements": "sends them",
    "messages-of-a-batch-have-sequence-ids": "shows the id of the batch",
    "shared-refuses-cumulative-acknowledgements": "sends them",
}

OF_JAVA_V5: Final = (
    "missing-topic-of-a-producer",
    "routing-vectors-four-segments",
    "sends-survive-a-split",
    "queue-reads-sealed-segments",
    "cumulative-ack-across-segments",
    "checkpoint-round-trip",
    "transaction-commit-over-segments",
)
OF_WEBSOCKET: Final = (
    "a-consumer-that-discards-gets-nothing",
    "a-consumer-that-fails-keeps-the-messages",
    "a-message-goes-to-the-dead-letter-topic",
    "an-unacknowledged-message-comes-again-after-the-timeout",
    "clients-go-on-after-an-unload",
)
"""The scenarios that the tests of the WebSocket API leave to the kit."""
KNOWN: Final = (
    KnownClient("ours", list(SCENARIOS)),
    KnownClient("ours-asyncio", CLASSIC[::3]),
    KnownClient(
        "python",
        CLASSIC,
        failures=PYTHON_FAILURES,
        # Lookups and other requests of the C++ client count their ids apart, so that two of them may be equal. It may
        # send everything twice when a producer opens again.
        rules=frozenset({"request-id-reused", "sequence-goes-back"}),
    ),
    KnownClient("websocket", sorted({*CLASSIC[1::3], *OF_WEBSOCKET})),
    # Grouped acknowledgements may come after a close.
    KnownClient("java", CLASSIC, rules=frozenset({"ack-after-close"})),
    KnownClient("java-v5", OF_JAVA_V5),
    KnownClient("go", CLASSIC, failures=GO_FAILURES),
    # Its seeks fail by chance: the closed consumer subscribes again by itself.
    KnownClient("rust", [name for name in CLASSIC[2::8] if "seek" not in name], failures=RUST_FAILURES),
    KnownClient("node", CLASSIC[3::8]),
    # The client does not follow redirects of lookups.
    KnownClient("flex", ["messages-arrive-in-order", "a-batch-is-acknowledged-with-all-its-messages"], brokers=1),
)
ROWS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "java": {
        "a-batch-in-a-transaction": ("B-29",),
        "a-committed-transaction-is-visible": ("B-29",),
        "a-consumer-with-too-many-unacknowledged-messages-waits": ("B-06",),
        "a-cumulative-acknowledgement-inside-a-batch": ("S54-21",),
        "a-delayed-message-arrives-at-its-time": ("B-21",),
        "a-producer-that-comes-back-knows-its-last-sequence-id": ("B-27",),
        "a-transaction-over-two-topics": ("B-29",),
        "a-value-of-schema-avro": ("B-30",),
        "a-value-of-schema-json": ("B-30",),
        "acknowledgements-of-a-committed-transaction-hold": ("B-29",),
        "acknowledgements-of-an-aborted-transaction-do-not-hold": ("B-29",),
        "all-chunks-of-a-message-go-to-one-shared-consumer": ("B-28",),
        "an-aborted-transaction-is-not-delivered": ("B-29",),
        "an-ended-transaction-cannot-be-used": ("B-29",),
        "an-exclusive-consumer-ignores-delays": ("B-21",),
        "an-unacknowledged-message-comes-again-after-the-timeout": ("B-20",),
        "each-key-goes-to-one-consumer": ("B-07",),
        "messages-wait-for-an-open-transaction": ("B-29",),
        "repeated-sequence-ids-are-dropped": ("B-27",),
        "single-messages-of-a-batch-are-acknowledged": ("S54-12",),
        "transactions-acknowledge-single-messages-of-a-batch": ("B-29", "S54-25"),
        "transactions-outlive-an-unload": ("B-29",),
        "two-transactions-cannot-acknowledge-a-message": ("B-29",),
    },
    "go": {
        "a-committed-transaction-is-visible": ("B-29",),
        "a-transaction-over-two-topics": ("B-29",),
        "acknowledgements-of-a-committed-transaction-hold": ("B-29",),
        "acknowledgements-of-an-aborted-transaction-do-not-hold": ("B-29",),
        "an-ended-transaction-cannot-be-used": ("B-29",),
        "two-transactions-cannot-acknowledge-a-message": ("B-29",),
    },
    "python": {
        "a-cumulative-acknowledgement-covers-all-before": ("B-16",),
        "a-large-message-travels-in-chunks": ("B-28",),
        "a-message-that-is-too-large-is-refused": ("W-05",),
        "a-reader-from-the-earliest-message": ("B-35",),
        "a-reader-knows-whether-a-message-is-available": ("B-35",),
        "acknowledged-messages-do-not-come-back": ("B-13",),
        "all-chunks-of-a-message-go-to-one-shared-consumer": ("B-28",),
        "an-acknowledged-message-in-chunks-does-not-come-back": ("B-28",),
        "an-exclusive-consumer-ignores-delays": ("B-21",),
        "clients-go-on-after-an-unload": ("B-50",),
        "each-key-goes-to-one-consumer": ("B-07",),
        "failover-consumers-divide-the-partitions": ("B-02",),
        "messages-spread-over-the-partitions": ("B-36",),
        "single-acknowledgements-outlive-an-unload": ("B-15",),
        "the-next-failover-consumer-goes-on": ("B-03",),
        "the-ordering-key-decides-before-the-key": ("B-09",),
        "the-redelivery-count-rises": ("B-19",),
        "unacknowledged-messages-come-back": ("B-13",),
        "unacknowledged-messages-go-to-the-next-failover-consumer": ("B-03",),
    },
}
"""Requirement rows that a scenario shows with a client."""


def case(client: KnownClient, name: str) -> ParameterSet:
    """Return the parameters of a client in a scenario, with the rows that these show."""
    marks = [pytest.mark.req(row) for row in ROWS.get(client.name, {}).get(name, ())]
    return pytest.param(client, client, name, id=f"{client.name}-{name}", marks=marks)


CASES: Final = [case(client, name) for client in KNOWN for name in client.scenarios]


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    client: KnownClient = request.param
    release = ready(client.name)
    with our_brokers(client.profile, number=client.brokers) as sides:
        folder = tmp_path_factory.mktemp(client.name)
        runner = Runner(release.command, sides, client.profile, folder, release.environment)
        yield runner
        runner.stop()


@pytest.mark.parametrize(("runner", "client", "name"), CASES, indirect=["runner"])
def test_a_client_passes_a_scenario(runner: Runner, client: KnownClient, name: str) -> None:
    result = runner.play(SCENARIOS[name])
    if name in client.failures:
        assert result.verdict is Verdict.FAIL, "the client passes: take the scenario out of its failures"
    elif not (client.rules.intersection(result.rules) and result.reason.startswith(BROKEN_RULE)):
        assert result.verdict in (Verdict.PASS, Verdict.UNSUPPORTED), result.reason
    if name in ROWS.get(client.name, {}):
        assert result.verdict is not Verdict.UNSUPPORTED, f"{result.reason}: move the rows of the scenario"
    if client.name == "ours":
        assert result.verdict is Verdict.PASS, result.reason
