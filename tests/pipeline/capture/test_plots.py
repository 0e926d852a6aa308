"""Plots show the values of their rows, and can be drawn without rows."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.dom import minidom

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pulsarium.pipeline.capture import plots

WHO = {"client": "Pulsar-Test", "client_version": "1.2.3", "protocol_version": 21}
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def texts(figure: Figure) -> list[str]:
    return [each.get_text() for each in figure.axes[0].texts]


def legend(figure: Figure) -> list[str]:
    return [each.get_text() for legend in figure.legends for each in legend.get_texts()]


def row(command: str, outcome: str, count: int, **other: Any) -> plots.Row:
    return {**WHO, "command": command, "outcome": outcome, "count": count, **other}


@pytest.mark.parametrize("draw", [plots.matrix, plots.latencies, plots.over_time])
def test_nothing_can_be_drawn(draw: Any) -> None:
    draw([]).savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize(
    ("outcomes", "words", "verdict"),
    [
        ({"ok": 1200}, "1,200", "all answered ok"),
        ({"ok": 2, "ConsumerBusy": 1}, "2 · 1 ConsumerBusy", "some refused"),
        ({"ConsumerBusy": 3, "TopicNotFound": 1}, "3 ConsumerBusy · 1 more", "all refused"),
        ({"ok": 5, "no answer": 1}, "5 · 1 no answer", "some unanswered"),
        ({"closed": 1}, "1 closed", "some unanswered"),
        ({"sent": 7}, "7", "wants no answer"),
    ],
)
def test_a_cell_of_the_matrix(outcomes: dict[str, int], words: str, verdict: str) -> None:
    figure = plots.matrix([row("SEND", outcome, count) for outcome, count in outcomes.items()])
    assert texts(figure) == [words]
    assert legend(figure) == [verdict]


def test_the_matrix_has_a_column_for_each_client_and_version() -> None:
    rows = [row("SEND", "ok", 1), row("SEND", "ok", 1, protocol_version=None), row("PING", "ok", 1, client="Other")]
    axes = plots.matrix(rows).axes[0]
    assert [each.get_text() for each in axes.get_xticklabels()] == [
        "Other 1.2.3\nprotocol 21",
        "Pulsar-Test 1.2.3\nnot connected",
        "Pulsar-Test 1.2.3\nprotocol 21",
    ]
    assert [each.get_text() for each in axes.get_yticklabels()] == ["PING", "SEND"]


def test_latencies_are_in_order_of_their_medians() -> None:
    spans = {"SEND": 2_000.0, "PING": 30.0, "SEEK": 1_500_000.0}
    rows = [row(name, "", 3, p50=p50, p99=2 * p50, max=3 * p50) for name, p50 in spans.items()]
    figure = plots.latencies(rows)
    assert [each.get_text() for each in figure.axes[0].get_yticklabels()] == ["PING", "SEND", "SEEK"]
    assert legend(figure) == ["Pulsar-Test 1.2.3"]


def test_frames_over_time_go_up_and_down() -> None:
    rows = [
        {"second": AT + timedelta(seconds=at), "direction": direction, "command": command, "count": count}
        for at, direction, command, count in [
            (0, "client->broker", "SEND", 10),
            (0, "broker->client", "SEND_RECEIPT", 8),
            (1, "client->broker", "SEND", 4),
        ]
    ]
    figure = plots.over_time(rows)
    bars = [(bar.get_x(), bar.get_height()) for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    assert sorted(bars) == [(0, -8), (0, 10), (1, 4)]
    assert legend(figure) == ["SEND", "SEND_RECEIPT"]


def test_an_hour_is_not_three_thousand_bars() -> None:
    rows = [
        {"second": AT + timedelta(seconds=at), "direction": "client->broker", "command": "SEND", "count": 10}
        for at in range(3600)
    ]
    bars = plots.over_time(rows).axes[0].patches
    assert len(bars) <= 120
    assert {round(bar.get_height()) for bar in bars if isinstance(bar, Rectangle)} == {10}


@pytest.mark.parametrize("name", ["$\\foo$", "a$b$c_d^", "\\$", "x\x00y", "\x1b[2J", "\ud800"])
def test_a_name_is_drawn_whatever_it_is(name: str) -> None:
    rows = [row("SEND", "ok", 3, client=name, p50=1, p99=2, max=3)]
    for draw in (plots.matrix, plots.latencies):
        into = io.BytesIO()
        draw(rows).savefig(into, format="svg")
        minidom.parseString(into.getvalue())


def test_dollars_are_no_mathematics() -> None:
    into = io.BytesIO()
    plots.matrix([row("SEND", "ok", 3, client="a$b$c")]).savefig(into, format="svg")
    assert b"<!-- a$b$c 1.2.3 -->" in into.getvalue()
