"""The bench, run against a fresh broker, prints every figure.

The programs about compaction, at a tiny size: each measures what its name says. The comparison of our client with the
official client. Growth: the table, the picture, and all measurements at tiny sizes.
"""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from tests.bench.bench import DIFFERENCES, bench
from tests.foreign.toolchains import PERF, REFERENCE, require
from yardsticks.bench.drivers.raw import RATE
from yardsticks.bench.growth import AXES, WHY, Axis, page, sizes_of, table
from yardsticks.bench.picture import short, svg
from yardsticks.bench.programs import CLIENTS, GROWTH, OF_CLIENTS, PROGRAMS, SIZES, chosen


@pytest.mark.heavy
def test_quick_yields_every_figure() -> None:
    run = bench("--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in told["figures"]}
    programs = chosen([])
    expected = {"start-connect", "start-ready"}
    expected |= {f"{when}-rss{part}" for when in ("idle", "loaded") for part in ("", "-anon")}
    expected |= {f"{p.name}.{what}" for p in programs for what in ("cpu", "rate", "broker-busy", "client-busy")}
    expected |= {f"{p.name}.{what}" for p in programs if p.latencies for what in ("p50", "p99")}
    expected |= {f"{p.name}.{part.name}" for p in programs for part in p.parts}
    expected |= {f"{p.family}.growth" for p in programs if p.family}
    assert medians.keys() == expected
    assert [name for name, median in medians.items() if median <= 0 and not name.endswith(DIFFERENCES)] == []


@pytest.mark.heavy
def test_a_family_at_a_tiny_size() -> None:
    run = bench("key-shared-consumers", "--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    figures = {f["figure"]: f for f in json.loads(run.stdout)["figures"]}
    assert {f"key-shared-consumers-{size}.cpu" for size in SIZES} < figures.keys()
    (growth,) = figures["key-shared-consumers.growth"]["brokers"]["pulsarium"]["runs"]
    largest, smallest = (
        figures[f"key-shared-consumers-{size}.cpu"]["brokers"]["pulsarium"]["median"] for size in (SIZES[-1], SIZES[0])
    )
    assert growth == pytest.approx(largest / smallest)


@pytest.mark.heavy
def test_topics_and_what_is_asked_one_at_a_time() -> None:
    run = bench("topics", "raw-send-sync", "raw-last-message-id", "--quick", "--markdown")
    assert run.returncode == 0, run.stderr
    lines = [line.split(" | ") for line in run.stdout.splitlines()]
    p99 = {line[0].removeprefix("| ") for line in lines if line[0].endswith(": p99")}
    assert p99 == {
        "raw get_last_message_id: p99",
        "raw send and wait for the receipt: p99",
        "a topic created over REST, 1 connection: p99",
        "a topic created over REST, 8 connections: p99",
    }


@pytest.mark.heavy
def test_a_consumer_that_keeps_up_at_a_tiny_size() -> None:
    run = bench("raw-tail-shared-unbatched", "--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}
    assert 0 < medians["raw-tail-shared-unbatched.rate"] < 1.2 * RATE
    assert 0 < medians["raw-tail-shared-unbatched.p50"] <= medians["raw-tail-shared-unbatched.p99"]


@pytest.mark.heavy
def test_pulsar_perf_at_a_tiny_size() -> None:
    require(REFERENCE)
    require(PERF)
    run = bench("perf", "--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}
    assert all(
        medians[f"perf-{does}-batched.{what}"] > 0 for does in ("publish", "consume") for what in ("cpu", "rate")
    )


def test_an_unknown_program_is_an_error() -> None:
    run = bench("no-such-program")
    assert run.returncode == 2
    assert "unknown program: no-such-program" in run.stderr


def test_programs_are_chosen_by_name_by_family_and_by_driver() -> None:
    assert [program.name for program in chosen(["compact", "send-sync"])] == ["send-sync", "compact"]
    assert {program.family for program in chosen(["shared-consumers"])} == {"shared-consumers"}
    assert [program.name for program in chosen(["compaction"])] == ["compacted-last-id", "compact"]
    assert chosen([], java=True) == list(PROGRAMS)
    assert {program.driver for program in PROGRAMS} - {program.driver for program in chosen([])} == {"perf"}
    assert [program.driver for program in chosen(["perf"])] == ["perf", "perf"]


def test_the_help_of_bench_teaches() -> None:
    text = bench("--help").stdout
    assert all(word in text for word in ("--against", "--json FILE", "--quick", "better", "scripts/reference-pulsar"))


def test_the_list_names_every_program() -> None:
    text = bench("--list").stdout
    assert [line.split()[0] for line in text.splitlines()] == [program.name for program in PROGRAMS]


@pytest.mark.heavy
def test_all_of_it_at_a_tiny_size() -> None:
    run = bench("compaction", "--quick", "--scale", "0.5", "--json", "-")
    assert run.returncode == 0, run.stderr
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}
    parts = {f"{program.name}.{part.name}" for program in chosen(["compaction"]) for part in program.parts}
    assert parts < medians.keys()
    assert all(medians[name] > 0 for name in parts if not name.endswith(DIFFERENCES))
    of = {name.removeprefix("compacted-last-id."): median for name, median in medians.items()}
    assert of["over-uncompacted"] == pytest.approx(of["v22"] / of["uncompacted"])


@pytest.mark.heavy
def test_every_client_does_every_program() -> None:
    told = bench("--clients", "--quick", "--json", "-")
    assert told.returncode == 0, told.stderr
    figures = {figure["figure"]: figure["brokers"] for figure in json.loads(told.stdout)["figures"]}
    for program in OF_CLIENTS:
        for what in ("rate", "cpu"):
            assert figures[f"{program}.{what}"].keys() == CLIENTS.keys()
            assert all(client["median"] > 0 for client in figures[f"{program}.{what}"].values())


@pytest.mark.parametrize("options", [("no-such-program",), ("raw-send-sync",), ("send-sync", "--against", "pulsar")])
def test_the_bench_refuses_options_that_do_not_fit(options: tuple[str, ...]) -> None:
    assert bench("--clients", *options).returncode == 2


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
