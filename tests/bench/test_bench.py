"""The bench, run against a fresh broker, prints every figure."""

from __future__ import annotations

import json

import pytest

from bench.many_consumers import RATE
from bench.programs import DELAYED, HOLES, PROGRAMS, SIZES, chosen
from tests.bench.bench import DIFFERENCES, bench
from tests.foreign.toolchains import PERF, REFERENCE, require


@pytest.mark.heavy
def test_quick_yields_every_figure() -> None:
    run = bench("--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in told["figures"]}
    programs = chosen([], large=True)
    expected = {"start-connect", "start-ready"}
    expected |= {f"{when}-rss{part}" for when in ("idle", "loaded") for part in ("", "-anon")}
    expected |= {f"{p.name}.{what}" for p in programs for what in ("cpu", "rate", "broker-busy", "client-busy")}
    expected |= {f"{p.name}.{what}" for p in programs if p.latencies for what in ("p50", "p99")}
    expected |= {f"{p.name}.{part.name}" for p in programs for part in p.parts}
    expected |= {f"{p.family}.growth" for p in programs if p.family}
    assert medians.keys() == expected
    assert [name for name, median in medians.items() if median <= 0 and not name.endswith(DIFFERENCES)] == []


@pytest.mark.heavy
def test_large_programs_at_a_tiny_size() -> None:
    run = bench("holes", "delayed", "--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in json.loads(run.stdout)["figures"]}
    assert all(medians[f"{p.name}.{part.name}"] > 0 for p in (HOLES, DELAYED) for part in p.parts if part.unit != "MB")


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


def test_programs_are_chosen_by_name_and_by_family() -> None:
    assert [program.name for program in chosen(["holes", "send-sync"], large=False)] == ["send-sync", "holes"]
    assert {program.family for program in chosen(["shared-consumers"], large=False)} == {"shared-consumers"}
    assert not any(program.large for program in chosen([], large=False))
    assert chosen([], large=True, java=True) == list(PROGRAMS)
    assert {program.group for program in chosen([], large=True, java=True) if program.java} == {"perf"}
    assert not any(program.java for program in chosen([], large=True))
    assert [program.java for program in chosen(["perf"], large=False)] == [True, True]


def test_the_help_of_bench_teaches() -> None:
    text = bench("--help").stdout
    assert all(word in text for word in ("--against", "--json FILE", "--quick", "better", "scripts/reference-pulsar"))


def test_the_list_names_every_program() -> None:
    text = bench("--list").stdout
    assert [line.split()[0] for line in text.splitlines()] == [program.name for program in PROGRAMS]


def test_transactions_at_a_tiny_size() -> None:
    run = bench("transactions", "--transactions", "20", "--messages", "200", "--open", "3")
    assert run.returncode == 0, run.stderr
    tables = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.stdout.splitlines() if "|" in line]
    rates, costs = tables[2:6], tables[8:]
    assert [row[:2] for row in rates] == [
        [title, group] for title in ("1 message + 1 ack", "10 messages + 1 ack") for group in ("1", "100")
    ]
    assert all(float(row[2].replace(",", "")) > 0 for row in rates)
    assert [(row[0], len(row)) for row in costs] == [("0", 8), ("3", 8)]
