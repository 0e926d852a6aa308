"""Growth: the table, the picture, and all measurements at tiny sizes."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from bench.growth.command import WHY, page, sizes_of, table
from bench.growth.measures import AXES, Axis
from bench.growth.picture import short, svg
from bench.program import GROWTH
from tests.bench.bench import bench

TOPICS = AXES[0]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(("up_to", "sizes"), [(1, TOPICS.sizes), (0.01, (1, 10, 100, 1000)), (0, (1, 10))])
def test_sizes_end_at_a_share_of_the_largest(up_to: float, sizes: tuple[int, ...]) -> None:
    assert tuple(sizes_of(TOPICS, up_to)) == sizes


def test_a_table_gives_the_reason_only_where_the_cost_exceeds_the_limit() -> None:
    grown, flat = table(TOPICS, [(1, 5.0), (10_000, 15.0)]), table(TOPICS, [(1, 5.0), (10_000, 9.0)])
    assert "| 10k | 15.0 | 3.00x |" in grown
    assert WHY["topics"] in grown.replace("\n", " ")
    assert flat.endswith("| 10k | 9.0 | 1.80x |")


def test_the_page_says_how_far_the_sizes_go() -> None:
    costs = {"topics": [(1, 5.0), (10, 6.0)]}
    assert "Medians of 2 runs. Sizes are up to 0.1 of the largest." in page(costs, 0.1, 2)
    assert "Medians of 1 run. " in page(costs, 1, 1)
    assert "of the largest" not in page(costs, 1, 1)


def test_the_picture_has_a_line_for_each_axis_and_a_point_for_each_size() -> None:
    drawn = ET.fromstring(svg({"topics": [(1, 5.0), (10, 6.0)], "start": [(1000, 1.0), (10**6, 9.0)]}, GROWTH))
    assert len(drawn.findall(f"{SVG}polyline")) == 2
    assert len(drawn.findall(f"{SVG}circle")) == 4
    assert {"topics", "start", "1M", "2x"} <= {text.text for text in drawn.findall(f"{SVG}text")}


def test_large_numbers_get_a_unit() -> None:
    assert [short(number) for number in (1, 1000, 2_500_000, 50 * 10**9)] == ["1", "1k", "2.5M", "50G"]


@pytest.mark.heavy
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_each_axis_is_measured_at_a_tiny_size(axis: Axis) -> None:
    run = bench("growth", axis.name, "--up-to", "0", "--repetitions", "1", "--scale", "0.01")
    assert run.returncode == 0, run.stderr
    rows = [line.split(" | ") for line in run.stdout.splitlines()[2:]]
    assert [row[0] for row in rows if len(row) == 3] == [f"| {short(size)}" for size in axis.sizes[:2]]
    assert all(float(row[1].replace(",", "")) > 0 for row in rows if len(row) == 3)
