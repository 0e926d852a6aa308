"""Reasons that no recording shows, and facts that are near a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.lab.why.unacknowledged import IN_LOOP
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.rest.why import Facts, explain
from pulsarium.rest.why.explain import as_json, ranked
from pulsarium.rest.why.pasted import NotPasted, pasted
from pulsarium.rest.why.reasons import REASONS
from pulsarium.rest.why.state import State
from tests.rest.why.recorded import STUCK

TOPIC = "persistent://public/default/t"
NOW = 1_800_000_000_000


def facts(consumers: tuple[dict[str, Any], ...] = ({},), internal: dict[str, Any] | None = None, **stats: Any) -> Facts:
    """Return facts of a Shared subscription whose consumers have permits, and which stood still for an hour."""
    known = [{"consumerName": f"c{number}", "availablePermits": 9, **each} for number, each in enumerate(consumers)]
    of_one = {"type": "Shared", "msgBacklog": 3, "consumers": known, **stats}
    return Facts(TOPIC, "sub", {"subscriptions": {"sub": of_one}}, internal or {}, now_ms=NOW)


def positions(read: str, last: str, *ledgers: tuple[int, int], state: str = "LedgerOpened") -> dict[str, Any]:
    """Return internal stats with a cursor, and the ledgers with their entries."""
    listed = [{"ledgerId": ledger, "entries": entries} for ledger, entries in ledgers]
    cursors = {"sub": {"readPosition": read}}
    return {"state": state, "ledgers": listed, "lastConfirmedEntry": last, "cursors": cursors}


def reasons(of: Facts) -> list[str]:
    return [each.reason for each in explain(of).findings]


@pytest.mark.parametrize("status", [409, 412, 500, 503])
def test_a_topic_without_stats_is_unavailable(status: int) -> None:
    refused = {"status": status, "reason": "Namespace bundle is being unloaded"}
    (finding,) = explain(Facts(TOPIC, "", {}, refused=refused)).findings
    assert (finding.reason, "is being unloaded" in finding.text) == ("topic-unavailable", True)


def test_consumers_with_permits_and_unread_entries_have_a_dispatcher_that_is_stuck() -> None:
    (finding,) = explain(facts(internal=positions("5:0", "5:2", (5, 0)))).findings
    assert (finding.reason, finding.certainty.startswith("likely, because")) == ("dispatcher-stuck", True)


@pytest.mark.parametrize(
    ("who", "command"),
    [
        ("Broker", "brokers get-all-dynamic-config"),
        ("Topic", f"topicPolicies get-dispatch-rate -ap {TOPIC}"),
        ("Subscription", f"topicPolicies get-subscription-dispatch-rate -ap {TOPIC}"),
    ],
)
def test_the_command_for_a_dispatch_rate_shows_the_one_that_is_used_up(who: str, command: str) -> None:
    stats: dict[str, Any] = {f"dispatchThrottledMsgEventsBy{who}Limit": 3}
    (finding,) = explain(facts(**stats)).findings
    assert finding.text == f"a dispatch rate of its {who.lower()} is used up"
    assert finding.command == f"pulsarium admin {command}"


def test_a_broker_that_a_proxy_does_not_reach_is_unavailable_for_no_reason_of_its_own() -> None:
    refused = {"status": 502, "reason": "the broker did not answer"}
    (finding,) = explain(Facts(TOPIC, "", {}, refused=refused)).findings
    assert finding.certainty == "likely, because a proxy on the way says so"


@pytest.mark.parametrize(
    ("read", "last", "ledgers", "unread"),
    [
        ("5:3", "5:2", [(5, 0)], 0),
        ("5:1", "5:2", [(5, 0)], 2),
        ("3:4", "5:2", [(3, 10), (4, 20), (5, 0)], 29),
        ("3:10", "5:-1", [(3, 10), (5, 0)], 0),
        ("6:0", "5:2", [(5, 3), (6, 0)], 0),
    ],
)
def test_unread_entries_are_counted_across_ledgers(
    read: str, last: str, ledgers: list[tuple[int, int]], unread: int
) -> None:
    assert State(facts(internal=positions(read, last, *ledgers))).unread == unread


@pytest.mark.parametrize(("ago", "found"), [(9_000, []), (10_000, ["no-permits"])])
def test_a_consumer_without_permits_is_a_finding_only_after_a_standstill(ago: int, found: list[str]) -> None:
    busy = {"availablePermits": 0, "lastConsumedTimestamp": NOW - ago}
    assert reasons(facts(consumers=(busy,), internal=positions("5:0", "5:2", (5, 0)))) == found


def test_one_free_consumer_of_two_is_no_lack_of_permits() -> None:
    busy = {"availablePermits": 0}
    assert "no-permits" not in reasons(facts(consumers=(busy, {}), internal=positions("5:0", "5:2", (5, 0))))


def test_a_gap_without_the_key_of_the_message_is_no_lack_of_an_owner() -> None:
    (of,) = next(each for each in STUCK if each.reason == "no-owner").facts
    ranges = [[0, 10], [12, 65535]]
    stats = {**of.of_subscription, "consumers": [{**of.of_subscription["consumers"][0], "keyHashRangeArrays": ranges}]}
    assert "no-owner" not in reasons(replace(of, stats={"subscriptions": {of.subscription: stats}}))


def test_key_ranges_as_texts_are_read_too() -> None:
    consumer = {"keyHashRanges": ["[0, 99]", "[200, 65535]"]}
    assert State(facts(consumers=(consumer,))).gaps == [(100, 199)]


def test_stats_of_an_old_release_without_most_counters_are_explained() -> None:
    old = {"subscriptions": {"sub": {"type": "Exclusive", "msgBacklog": 7, "consumers": []}}}
    assert reasons(Facts(TOPIC, "sub", old)) == ["no-consumer"]


def test_the_answer_has_the_form_of_the_labs_answer() -> None:
    stuck, well = explain(facts(consumers=())), explain(facts(msgBacklog=0))
    answer = as_json(ranked([well, stuck]))
    assert (answer["reason"], answer["details"]["topic"], answer["details"]["backlog"]) == ("no-consumer", TOPIC, 3)
    assert [row["reason"] for row in answer["details"]["subscriptions"]] == ["no-consumer", "caught-up"]
    (finding,) = answer["details"]["findings"]
    assert finding == {
        "reason": "no-consumer",
        "text": "no consumer is connected, and 3 entries wait",
        "certain": True,
        "certainty": "the counters say so",
        "facts": {"msgBacklog": 3, "consumers": []},
        "advice": "start a consumer, or delete the subscription if nobody needs it",
        "command": f"pulsarium admin topics stats {TOPIC}",
        "destructive": f"pulsarium admin topics unsubscribe -s sub {TOPIC}",
    }


@pytest.mark.parametrize(("rate", "found"), [(8.9, []), (9.0, ["publish-rate"])])
def test_producers_that_use_up_their_rate_are_held_back(rate: float, found: list[str]) -> None:
    """Pulsar 4.0 does not count how often a publish rate paused them."""
    known = Facts(TOPIC, "", {"msgRateIn": rate}, policies={"publishRate": {"publishThrottlingRateInMsg": 10}})
    assert reasons(known) == found


PAGE = (Path(__file__).parents[3] / "docs" / "real-clusters.md").read_text()


def test_the_page_names_every_reason() -> None:
    assert [name for name in REASONS if f"| `{name}` |" not in PAGE] == []


def test_the_page_names_the_reasons_that_the_lab_has_too() -> None:
    """A reason that gets another name, here or in the lab, is missing then."""
    [named] = re.findall(r"\n\n(`[^|]*) are\s+names of the lab, too\.", PAGE)
    of_lab = {IN_LOOP, *(each.word for each in Reason)}
    assert {*re.findall("`(.+?)`", named)} == of_lab & {*REASONS}


# ---- pasted documents


def test_pasted_partitions_are_explained_each() -> None:
    one = {"subscriptions": {"sub": {"type": "Shared", "msgBacklog": 1, "consumers": []}}}
    inside = {"cursors": {"sub": {"readPosition": "5:0"}}}
    names = [f"{TOPIC}-partition-{index}" for index in range(2)]
    found = pasted([{"partitions": dict.fromkeys(names, inside)}, {"partitions": dict.fromkeys(names, one)}])
    assert [each.topic for each in found] == names
    assert all((each.subscription, each.internal) == ("sub", inside) for each in found)


@pytest.mark.parametrize("document", [[], 1, {}, {"cursors": {}}, {"partitions": {"t": {}}}])
def test_a_document_without_stats_is_refused(document: object) -> None:
    with pytest.raises(NotPasted):
        pasted([document])
