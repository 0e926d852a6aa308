"""Recorded states of real brokers: the stuck ones are explained, and the healthy ones raise no alarm."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest

from pulsarium.cli.main import cli
from pulsarium.rest.why import explain
from pulsarium.rest.why.reasons import REASONS
from tests.rest.why.recorded import HEALTHY, STUCK, Recording
from yardsticks.stuck import states as states_of
from yardsticks.stuck.healthy import HEALTHY as HEALTHY_STATES

# The last resort: other recordings have it when a part of their facts is missing.
NOT_RECORDED = {"dispatcher-stuck"}
# Reasons that stats alone do not show, and a state of another reason.
NOT_IN_STATS = {"ack-gaps", "broker-owes", "pending-ack", "terminated", "topic-not-found", "topic-unavailable"}
NOT_IN_STATS |= {"transaction-buffer", "unreadable", "an-exclusive-client-that-reads-nothing"}
# Pulsar 3.0 and 4.0 do not count these.
NOT_IN_STATS |= {"3.0.7/stuck/the-dispatch-rate-of-the-topic", "4.0.7/stuck/a-publish-rate-that-stops-the-producers"}


def reason(of: Recording, without: str = "", *parts: str) -> str:
    """Return the first reason of a recording, when the table has no row `without`."""
    return of.explained({name: row for name, row in REASONS.items() if name != without}, *parts)[0].reason


def test_there_are_enough_states_of_both_kinds_and_all_releases() -> None:
    assert (len(STUCK) >= 20, len(HEALTHY) >= 50) == (True, True)
    assert {each.name.partition("/")[0] for each in (*STUCK, *HEALTHY)} == {"3.0.7", "4.0.7", "4.2.4", "5.0.1"}


def test_every_state_of_the_yardstick_is_recorded_on_the_two_latest_releases() -> None:
    states: dict[str, str | None] = {f"stuck/{name}": reason for name, (reason, _) in states_of.STUCK.items()}
    states |= {f"healthy/{name}": None for name in HEALTHY_STATES}
    recorded = {each.name: each.reason for each in (*STUCK, *HEALTHY)}
    for release in ("4.2.4", "5.0.1"):
        missing = {name for name, reason in states.items() if recorded.get(f"{release}/{name}", "") != reason}
        assert {name.partition("/")[2] for name in missing} <= states_of.ALONE.keys()


@pytest.mark.parametrize("of", STUCK, ids=str)
def test_a_stuck_state_is_explained_by_its_reason(of: Recording) -> None:
    assert reason(of) == of.reason


@pytest.mark.parametrize("of", HEALTHY, ids=str)
def test_a_topic_that_is_well_raises_no_alarm(of: Recording) -> None:
    assert [each.reason for answer in of.explained() for each in answer.findings] == []


@pytest.mark.parametrize("name", sorted(REASONS.keys() - NOT_RECORDED))
def test_without_a_reason_its_states_are_not_explained(name: str) -> None:
    """Plant a fault: a table that lacks a row explains the states of that row, and no others, wrongly."""
    wrong = {each.name for each in STUCK if reason(each, without=name) != each.reason}
    assert wrong == {each.name for each in STUCK if each.reason == name} != set()


def test_without_the_need_of_a_standstill_healthy_topics_raise_alarms() -> None:
    """Plant a fault: rules that judge topics with traffic as if they stood still."""
    hasty = {name: replace(row, needs_quiet=False) for name, row in REASONS.items()}
    assert [each for each in HEALTHY if any(answer.findings for answer in each.explained(hasty))] != []


@pytest.mark.parametrize(
    "of", [each for each in STUCK if NOT_IN_STATS.isdisjoint({each.reason, each.state, each.name})], ids=str
)
def test_stats_alone_explain_a_stuck_state(of: Recording) -> None:
    assert reason(of, "", "stats") == of.reason


@pytest.mark.parametrize("of", [each for each in STUCK if each.reason == "unreadable"], ids=str)
def test_a_lost_ledger_that_nobody_may_peek_at_is_a_dispatcher_that_is_stuck(of: Recording) -> None:
    (finding,) = explain(replace(of.facts[0], peeked={})).findings
    assert (finding.reason, finding.certainty.startswith("likely, because")) == ("dispatcher-stuck", True)


@pytest.mark.parametrize("of", [each for each in STUCK if each.reason == "pending-ack"], ids=str)
def test_acknowledgements_in_transactions_that_nobody_may_list_are_likely(of: Recording) -> None:
    (finding,) = explain(replace(of.facts[0], transactions={})).findings
    assert (finding.reason, finding.certainty.startswith("likely, because")) == ("pending-ack", True)


@pytest.mark.parametrize("of", HEALTHY, ids=str)
def test_stats_alone_raise_no_alarm(of: Recording) -> None:
    assert [each.reason for answer in of.explained(REASONS, "stats") for each in answer.findings] == []


@pytest.mark.parametrize("of", STUCK, ids=str)
def test_the_commands_of_a_finding_are_ones_that_pulsarium_has(of: Recording) -> None:
    for finding in of.explained()[0].findings:
        for command in filter(None, (finding.command, finding.destructive)):
            program, *words = command.split()
            assert program == "pulsarium"
            parsed(cli, words)


@pytest.mark.parametrize("of", STUCK, ids=str)
def test_the_first_command_of_a_finding_destroys_nothing(of: Recording) -> None:
    for finding in of.explained()[0].findings:
        what = finding.command.split()[3]
        assert what.startswith(SAFE), what


SAFE = (
    *("stats", "get-", "list", "lookup", "peek-messages", "slow-", "transaction-buffer-stats", "pending-ack-stats"),
    *("unload", "remove-dispatcher-pause-on-ack-state-persistent"),  # they change something, and lose no message
)


def parsed(command: click.Command, words: list[str]) -> None:
    """Parse a line down to its last command. Raise click.UsageError for a word that no command knows."""
    context = command.make_context(command.name, words, resilient_parsing=False)
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command, context = found, found.make_context(found.name, words, parent=context)
