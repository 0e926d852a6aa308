"""The list of scenarios, and steps that several of them take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pulsarium.conformance.recordings.recorder import Connection, Recorder, Scenario
from pulsarium.conformance.recordings.wire import Frame

MAXL = 2**64 - 1
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
EARLIEST = {"ledgerId": MAXL, "entryId": MAXL}
TCA = "persistent://pulsar/system/transaction_coordinator_assign"
B10 = [f"b{i}" for i in range(10)]

SCENARIOS: dict[int, Scenario] = {}

Play = Callable[[Recorder], None]
Listing = Callable[[Play], Play]


class ScenarioDecorator(Protocol):
    """The decorator that registers a scenario."""

    def __call__(
        self, number: int, purpose: str, profile: str = "lab", warm: bool = True, **config: object
    ) -> Listing: ...


def lists_in(scenarios: dict[int, Scenario]) -> ScenarioDecorator:
    """Return the decorator that lists a function as the scenario of a number; the function's name gives the slug."""

    def scenario(number: int, purpose: str, profile: str = "lab", warm: bool = True, **config: object) -> Listing:
        def listed(play: Play) -> Play:
            assert number not in scenarios, number
            slug = play.__name__.replace("_", "-")
            scenarios[number] = Scenario(number, slug, purpose, profile, warm, config, play)
            return play

        return listed

    return scenario


scenario = lists_in(SCENARIOS)


def fill_topic(c: Connection, t: str, n: int = 5, pid: int = 50, name: str = "filler") -> list[dict[str, int]]:
    c.prod(t, pid, name)
    return [c.payload(pid, i, f"m{i}").id() for i in range(n)]


def publish(
    p: Connection, n: int, start: int = 0, pid: int = 0, key: Callable[[int], str] | None = None, prefix: str = "m"
) -> list[dict[str, int]]:
    def metadata(i: int) -> dict[str, str] | None:
        return {"partition_key": key(i)} if key else None

    return [p.payload(pid, i, f"{prefix}{i}", md=metadata(i)).id() for i in range(start, start + n)]


def consumers(name: str) -> Callable[[Any], Any]:
    """Return what picks a subscription's consumers from the stats of its topic."""
    fields = ("consumerName", "availablePermits", "unackedMessages", "msgOutCounter", "blockedConsumerOnUnackedMsgs")
    return lambda v: [tuple(c[field] for field in fields) for c in v["subscriptions"][name]["consumers"]]


def again(s: Recorder, a: Connection, t: str, sub: str, cid: int, type: str = "Exclusive", n: int = 100) -> None:
    a.sub(t, sub, cid, type, permits=n)
    s.settle(300)


def txn(c: Connection, ttl: int = 30000) -> dict[str, Any]:
    f = c.req("NEW_TXN", txn_ttl_millis=ttl, tc_id=0)
    return {"txnid_most_bits": f.txnid_most_bits, "txnid_least_bits": f.txnid_least_bits}


def tsend(
    c: Connection, pid: int, seq: int, p: str, x: Mapping[str, Any], md: Mapping[str, Any] | None = None, **more: Any
) -> Frame | None:
    """Send in a transaction."""
    frame: Frame | None = c.payload(pid, seq, p, md={**x, **(md or {})}, **x, **more)
    return frame


def tc(s: Recorder, name: str = "T") -> Connection:
    """Connect to the transaction coordinator."""
    c = s.conn(name)
    c.req("PARTITIONED_METADATA", topic=TCA)
    c.req("LOOKUP", topic=TCA + "-partition-0")
    for _ in range(20):  # the coordinator loads after the lookup has made this broker the owner
        f = c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
        if f is not None and not f.cmd.HasField("error"):
            break
        s.pump(0.2)
        s.sleep(0.2)
    return c
