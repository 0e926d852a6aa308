"""The programs about compaction, at a tiny size: each measures what its name says."""

from __future__ import annotations

import json

import pytest

from bench.compacted import cost_of_sending
from bench.measure import Run
from bench.programs import COMPACT, LAST_ID, chosen
from bench.report import Results
from bench.tables import table
from tests.bench.bench import DIFFERENCES, bench


def test_the_compaction_programs_are_one_group() -> None:
    assert chosen(["compaction"], large=False) == [LAST_ID, COMPACT]


@pytest.mark.heavy
def test_all_of_it_at_a_tiny_size() -> None:
    run = bench("compaction", "--quick", "--scale", "0.5", "--json", "-")
    assert run.returncode == 0, run.stderr
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}
    parts = {f"{program.name}.{part.name}" for program in (LAST_ID, COMPACT) for part in program.parts}
    assert parts < medians.keys()
    assert all(medians[name] > 0 for name in parts if not name.endswith(DIFFERENCES))
    of = {name.removeprefix("compacted-last-id."): median for name, median in medians.items()}
    assert of["over-uncompacted"] == pytest.approx((of["v22-cpu"] - of["copy"]) / of["uncompacted-cpu"])
    assert medians["compacted-last-id.stored"] <= 100
    # Without field 31 the broker unpacks a megabyte. The ratio shows that the older engine compacted the topic.
    assert medians["compacted-last-id.over-unlisted"] < 0.5


@pytest.mark.heavy
def test_sending_more_costs_more() -> None:
    assert cost_of_sending(4_000_000, 5) > 0


@pytest.mark.heavy
def test_a_broker_that_cannot_do_every_part() -> None:
    """A real broker has neither protocol version 22 nor our compaction engine."""
    both = Results(["pulsarium", "pulsar"])
    alike = dict.fromkeys([part.name for part in LAST_ID.parts], 1.0)
    runs = {
        "pulsarium": [Run(1000, 0.1, 0.01, 0.05, (0.1,), alike)],
        "pulsar": [Run(1000, 0.1, 0.01, 0.05, (0.1,), {"listed-cpu": 9.0})],
    }
    both.programs = {LAST_ID.name: runs}
    figures = {figure.name: figure for figure in both.figures()}
    assert figures["compacted-last-id.unlisted-cpu"].median("pulsar") is None
    assert figures["compacted-last-id.unlisted-cpu"].ratio is None
    assert figures["compacted-last-id.listed-cpu"].ratio == pytest.approx(9)
    assert "1.00 us" in table(both)
