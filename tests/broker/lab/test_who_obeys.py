"""Uses of time in the broker, sorted by whether they obey the lab's clock.

Each run makes the list anew from the source. A new use must be sorted here, and needs a test if it waits.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import pulsarium.broker

BROKER = Path(pulsarium.broker.__file__).parent
ASKED = ("call_at", "call_later", "every", "now_ms", "monotonic", "_now_ms", "_monotonic")
CLOCK = ("time", "monotonic", "perf_counter", "time_ns")
PATIENCE = ("sleep", "move_on_after", "move_on_at", "fail_after", "current_time")

# Modules that wait or decide by time, with the tests of tests/broker/lab/test_waiting.py that advance the clock for
# them.
OBEYS: Mapping[str, str | tuple[str, ...]] = {
    "web/rates.py": "test_rates_are_averages_over_a_minute_of_the_clock",
    "model/cursor/managed_cursor.py": "test_cursors_are_kept_after_a_while",
    "model/dispatch/delays.py": "test_delayed_messages_come_when_the_clock_is_advanced",
    "model/dispatch/single_active.py": "test_a_failover_consumer_becomes_active_after_its_delay",
    "model/subscription/throttle.py": "test_a_dispatch_rate_delivers_the_next_message_in_the_next_period",
    "model/ledger/interceptors.py": "test_clients_stamp_messages_by_a_clock_that_did_not_advance",
    "model/ledger/managed_ledger.py": "test_retention_deletes_an_old_ledger_when_its_time_is_over",
    "model/subscription/persistent.py": (
        "test_an_unused_subscription_is_deleted_when_its_time_is_over",
        "test_a_read_that_failed",
    ),
    "model/topic/base.py": "test_an_inactive_topic_is_deleted_when_its_time_is_over",
    "model/topic/deduplication.py": "test_producers_that_left_are_forgotten",
    "model/rate/rates.py": (
        "test_a_dispatch_rate_beyond_what_comes_in",
        "test_a_publish_rate_lets_messages_in_when_its_tokens_come_back",
        "test_a_subscribe_rate_allows_another_subscribe_in_the_next_period",
    ),
    "model/topic/persistent.py": "test_a_cursor_is_moved_by_the_brokers_time",
    "model/transaction/coordinator.py": "test_transactions_time_out",
    "commands/scalable_watch.py": "test_changes_of_a_namespace_are_gathered_for_a_moment",
    "model/transaction/scalable.py": "test_transactions_over_scalable_topics_time_out_and_are_forgotten",
    "model/scalable/auto_scale.py": "test_cold_segments_of_scalable_topics_are_merged",
    "model/scalable/controller.py": "test_cold_segments_of_scalable_topics_are_merged",
    "model/scalable/registrations.py": "test_registered_consumers_leave_after_their_grace_period",
    "model/topic/backlog.py": ("test_backlog_quotas_by_age", "test_time_to_live"),
    "model/upkeep.py": (
        "test_a_deduplication_snapshot_is_taken_after_an_hour",
        "test_an_inactive_topic_is_deleted_when_its_time_is_over",
    ),
    "net/rounds.py": "test_a_check_of_many_topics",
    "web/websocket/consumer.py": "test_redelivery_to_websockets",
    "web/websocket/topic_producer.py": "test_batches_of_websockets",
}
# Modules that use the broker's own clock, which no namespace's clock moves, and why. All other modules of OBEYS and
# STAMPS use the clock of their topic's namespace.
OF_THE_BROKER = {
    "web/rates.py": "one round computes the rates of all topics",
    "model/transaction/coordinator.py": "a transaction has topics of several namespaces",
    "model/transaction/scalable.py": "a transaction has topics of several namespaces",
    "commands/scalable_watch.py": "updates of a client's connection",
    "web/admin/cluster/broker_stats.py": "the first stats of a broker",
    "cluster.py": "limits of brokers and groups; certificates; starts of brokers; namespaces that do not exist",
    "web/http/live.py": "the console shows the broker's clock",
    "web/console/listing.py": "how long topics of all namespaces have been idle",
    "web/console/samples.py": "samples of all namespaces share their frames",
    "server.py": "runs the clock",
    "session/session.py": "when a client was refused",
    "web/websocket/consumer.py": "a pattern has no topic yet",
}
CLOCK_OF_A_BROKER = {"broker", "_broker", "cluster"}
LINES_APART = {"machine", "keep_alive", "token_expiry"}
# Modules that only record when something happened, for people to read. Nothing depends on these times.
STAMPS = {
    "web/admin/cluster/broker_stats.py",
    "web/admin/topic/stats_json.py",
    "web/console/events.py",
    "web/console/listing.py",
    "web/console/samples.py",
    "web/console/waiting.py",
    "web/http/live.py",
    "web/console/form.py",
    "web/console/preview.py",
    "web/console/publish.py",
    "web/admin/topic/internal_stats.py",
    "web/admin/topic/backlog.py",
    "web/admin/topic/producing.py",
    "web/admin/topic/schemas.py",
    "commands/consumer.py",
    "commands/scalable.py",
    "model/compaction/compacted.py",
    "model/compaction/record.py",
    "model/scalable/topics.py",
    "model/topic/joining.py",
    "model/subscription/base.py",
    "model/cursor/pending_record.py",
    "model/transaction/buffer.py",
    "model/transaction/record.py",
    "session/session.py",
    "web/websocket/letters.py",
    "web/websocket/producer.py",
}
# Timelines of their own (broker/clock.py). Some can be put under the lab's clock; `machine` never is.
APART = {
    "web/admin/cluster/brokers.py": "machine: the answer is written first",
    "web/console/events.py": "machine: what counts as one event",
    "web/console/paces.py": "machine: how far apart two looks of a page are",
    "web/console/samples.py": "machine: when the next frame is made",
    "web/http/site.py": "machine: a clock that stands still would refuse everybody",
    "auth/authentication.py": "token-expiry",
    "auth/login.py": "token-expiry",
    "auth/tokens.py": "token-expiry",
    "cluster.py": "machine: a store that failed is tried again; token-expiry; the rest of the clock is passed on",
    "model/compaction/compaction.py": "machine: others get a turn",
    "model/cursor/save_pace.py": "machine: how often a large record is saved",
    "model/topic/change_events.py": "machine: others get a turn",
    "session/liveness.py": "keep-alive; token-expiry",
    "web/websocket/retry.py": "machine: attempts to open a topic again",
    "web/websocket/topic_consumer.py": "machine: a thread has taken a batch apart",
    "web/websocket/socket.py": "keep-alive: silence of a client, and pings",
}
PASSED_ON = {"auth/tls.py": "the clock's monotonic: files are looked at by the broker's time"}
# Modules that use the machine's own clock, independent of the broker's: for sockets, disks and processor time.
MACHINE = {
    "proxying.py": "connections end when the proxy ends",
    "net/accepting.py": "handshakes; the process has no file descriptor left",
    "web/forwarding.py": "a server that neither takes nor answers anything",
    "web/http/connection.py": "a client that neither sends nor takes anything",
    "web/http/live.py": "how often it looks for changes",
    "web/http/request.py": "a body that does not come",
    "web/http/resource.py": "how long a request holds the event loop",
    "web/admin/topic/backlog.py": "how long a scan may work",
    "web/console/messages.py": "how long a search may work",
    "session/gate.py": "the slice of a connection",
    "session/transport.py": "the last words to a socket",
    "model/compaction/compaction.py": "how long a turn of the engine holds the event loop",
    "net/slices.py": "processor time of a slice",
    "net/stalls.py": "how long the event loop was held",
    "storage/committer.py": "how often it looks whether its files are still there",
    "storage/pace.py": "how long the device takes for a write",
    "storage/held_commits.py": "clients wait for their receipts",
    "web/websocket/service.py": "a broker that does not answer an upgrade",
    "web/websocket/socket.py": "the client's own end of a connection",
    "storage/worker.py": "a disk that does not answer at the end",
}


def waiting() -> ast.Module:
    return ast.parse(Path(__file__).with_name("test_waiting.py").read_text())


@cache
def sources() -> list[tuple[str, ast.Module]]:
    found = []
    for path in sorted(BROKER.rglob("*.py")):
        name = path.relative_to(BROKER).as_posix()
        if name != "clock.py" and not name.startswith(("lab/", "testing/", "web/lab/")):
            found.append((name, ast.parse(path.read_text())))
    return found


def asks(module: ast.Module, names: Collection[str]) -> Iterator[str]:
    """Yield the object of each use of these attributes: its name, or "" if the object has no name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in names:
            yield node.value.id if isinstance(node.value, ast.Name) else ""


def asks_the_machine(module: ast.Module) -> bool:
    names = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    return "perf_counter" in names or "time" in asks(module, CLOCK) or "trio" in asks(module, PATIENCE)


def test_everybody_who_asks_for_the_time_is_sorted() -> None:
    asking = {name for name, module in sources() if any(whose != "time" for whose in asks(module, ASKED))}
    assert asking == OBEYS.keys() | STAMPS | APART.keys() | PASSED_ON.keys()


def test_each_use_of_the_machine_s_time_has_a_reason() -> None:
    assert {name for name, module in sources() if asks_the_machine(module)} == MACHINE.keys()


def asks_the_broker(module: ast.Module) -> bool:
    """Return whether the module reads `broker.clock`, except for its separate timelines."""
    apart = {
        id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr in LINES_APART
    }
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "clock"
        and id(node) not in apart
        and getattr(node.value, "attr", getattr(node.value, "id", "")) in CLOCK_OF_A_BROKER
        for node in ast.walk(module)
    )


def test_each_use_of_the_brokers_own_clock_has_a_reason() -> None:
    asking = {name for name, module in sources() if asks_the_broker(module)}
    of_the_cluster = {"cluster.py", "model/transaction/coordinator.py", "model/transaction/scalable.py"}
    assert asking | of_the_cluster == OF_THE_BROKER.keys()


def test_each_timer_that_no_namespace_moves_is_listed() -> None:
    body = waiting().body
    (found,) = (each.value for each in body if isinstance(each, ast.Assign) and "ONLY_THE_BROKERS" in ast.unparse(each))
    not_moved = set(ast.literal_eval(found))
    only = {name for name, tests in OBEYS.items() if {*named_by(tests)} <= not_moved}
    assert only == OBEYS.keys() & OF_THE_BROKER.keys() - {"web/websocket/consumer.py"}


def test_whoever_sets_a_timer_obeys_or_is_apart() -> None:
    setting = {
        name for name, module in sources() if any(True for _ in asks(module, ("call_at", "call_later", "every")))
    }
    assert setting <= OBEYS.keys() | APART.keys()


def named_by(found: str | tuple[str, ...]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else found


@pytest.mark.parametrize("test", sorted({test for found in OBEYS.values() for test in named_by(found)}))
def test_each_use_of_the_clock_has_a_test(test: str) -> None:
    assert test in {node.name for node in waiting().body if isinstance(node, ast.AsyncFunctionDef)}
