from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench.bench import BY_NAME
from yardsticks.bench.accounting import MB, Memory
from yardsticks.bench.measure import Run, Start
from yardsticks.bench.programs import CLIENTS
from yardsticks.bench.report import Results, markdown, table
from yardsticks.bench.work import percentile


def run(cpu: float, *latencies: float) -> Run:
    return Run(operations=1000, seconds=0.1, broker_cpu=cpu, client_cpu=0.05, latencies=latencies)


@pytest.fixture
def results() -> Results:
    both = Results(["pulsarium", "pulsar"])
    both.starts = {
        "pulsarium": [Start(seconds, seconds + 0.1, Memory(50 * MB, 30 * MB)) for seconds in (0.3, 0.6, 0.2)]
    }
    both.programs = {
        "publish-unbatched": {
            "pulsarium": [run(0.01), run(0.02), run(0.012)],
            "pulsar": [run(0.06), run(0.03), run(0.048)],
        },
        "send-sync": {"pulsarium": [run(0.01, 0.001, 0.003, 0.002)], "pulsar": [run(0.01, 0.01)]},
    }
    return both


def test_medians_ratios_and_targets(results: Results) -> None:
    figures = {f.name: f for f in results.figures()}
    cpu = figures["publish-unbatched.cpu"]
    assert cpu.median("pulsarium") == pytest.approx(12)
    assert cpu.median("pulsar") == pytest.approx(48)
    assert cpu.ratios == [pytest.approx(4)]
    assert cpu.targets == [("3x", True)]
    assert figures["start-connect"].median("pulsarium") == 0.3
    assert figures["start-connect"].median("pulsar") is None
    assert figures["start-connect"].ratios == []
    assert figures["publish-unbatched.rate"].median("pulsarium") == pytest.approx(10_000)
    assert figures["publish-unbatched.rate"].targets == [("1.5x", False)]
    assert figures["publish-unbatched.broker-busy"].ratios == []
    assert figures["publish-unbatched.broker-busy"].median("pulsarium") == pytest.approx(0.12)
    assert figures["publish-unbatched.client-busy"].median("pulsarium") == pytest.approx(0.5)
    assert figures["send-sync.p50"].median("pulsarium") == pytest.approx(2000)
    assert figures["send-sync.p99"].median("pulsarium") == pytest.approx(3000)


def test_a_target_that_is_missed(results: Results) -> None:
    results.programs["publish-unbatched"] = {"pulsarium": [run(0.016)], "pulsar": [run(0.040)]}
    lines = table(results).splitlines()
    assert next(line for line in lines if "publish, unbatched" in line).endswith("2.50x  3x  MISSED")
    results.starts["pulsar"] = [Start(3, 12, Memory(480 * MB, 400 * MB))]
    lines = table(results).splitlines()
    assert next(line for line in lines if "CONNECTED" in line).endswith("10.00x  <= 0.5, 15x  MISSED")
    assert all(f.met is None for f in results.figures() if f.name.endswith("-busy"))


def test_beside_another_pulsarium_no_advantage_is_asked_for(results: Results) -> None:
    results.beside_pulsar = False
    figures = {f.name: f for f in results.figures()}
    assert figures["publish-unbatched.rate"].targets == []
    assert figures["start-connect"].targets == [("<= 0.5", True)]


def test_cpu_targets_hold_for_a_broker_in_memory(results: Results) -> None:
    alone = Results(["pulsarium"], programs={"publish-unbatched": {"pulsarium": [run(0.016)]}})
    assert "<= 15  MISSED" in table(alone)
    assert {f.name for f in alone.figures() if f.met is not None} == {"publish-unbatched.cpu"}


def test_more_a_second_is_better_and_less_of_anything_else(results: Results) -> None:
    results.programs["send-sync"]["pulsar"] = [Run(1000, 0.4, 0.01, 0.05, (0.012,))]
    figures = {f.name: f for f in results.figures()}
    assert figures["send-sync.rate"].ratios == [pytest.approx(4)]
    assert figures["send-sync.p99"].ratios == [pytest.approx(4)]
    assert figures["send-sync.p99"].targets == [("2x", True)]


def test_memory_after_all_programs(results: Results) -> None:
    results.loaded = {"pulsarium": Memory(100 * MB, 90 * MB), "pulsar": Memory(900 * MB, 800 * MB)}
    figures = {f.name: f for f in results.figures()}
    assert figures["loaded-rss"].targets == [("10x", False)]
    assert figures["loaded-rss-anon"].median("pulsar") == 800


def test_markdown_has_what_is_held_to_a_target_first(results: Results) -> None:
    head, held, between, free = markdown(results).split("\n\n")
    assert between == "Figures without a target, from the same run:"
    assert head.startswith("Medians of 1 run. On ")
    assert held.splitlines()[:2] == [
        "|  | pulsarium | pulsar | better | target |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    assert "| publish, unbatched: broker CPU | 12.0 us | 48.0 us | 4.00x | 3x |" in held.splitlines()
    assert "| publish, unbatched: rate | 10,000 /s | 10,000 /s | 1.00x | 1.5x  MISSED |" in held.splitlines()
    assert free.splitlines()[0] == "|  | pulsarium | pulsar | better |"
    assert any(line.startswith("| send and wait for the receipt: p50 | 2,000 us |") for line in free.splitlines())
    assert "cores in use" not in free
    alone = Results(["pulsarium"], results.starts)
    assert "| launch to CONNECTED | 0.30 s | <= 0.5 |" in markdown(alone).splitlines()


def test_the_table_has_a_block_for_each_quantity(results: Results) -> None:
    lines = table(results).splitlines()[2:]
    assert lines[0].split() == ["start", "and", "memory", "pulsarium", "pulsar", "better", "target"]
    assert lines[1].split() == ["launch", "to", "CONNECTED", "0.30", "s", "-", "<=", "0.5"]
    cpu = next(line for line in lines[6:] if line.startswith("publish, unbatched"))
    assert cpu.split()[2:] == ["12.0", "us", "48.0", "us", "4.00x", "3x"]


@pytest.mark.parametrize("shown", [table, markdown])
def test_runs_and_the_settings_of_both_brokers_come_first(results: Results, shown: Callable[[Results], str]) -> None:
    results.warm_ups, results.repetitions, results.settings = 1, 3, {"journalSyncData": "false"}
    results.configured = ["pulsarium", "pulsar"]
    head = "Medians of 3 runs after 1 to warm up. pulsarium and pulsar: journalSyncData=false."
    assert shown(results).startswith(head)
    told = results.as_json()
    assert (told["warm_ups"], told["repetitions"], told["settings"]) == (1, 3, {"journalSyncData": "false"})


def test_json_holds_every_run(results: Results) -> None:
    told = results.as_json()
    cpu = next(f for f in told["figures"] if f["figure"] == "publish-unbatched.cpu")
    assert cpu["brokers"]["pulsarium"]["runs"] == pytest.approx([10, 20, 12])
    assert (cpu["unit"], cpu["target"], cpu["times_better_target"], cpu["met"]) == ("us", None, 3, True)
    assert cpu["times_better"] == [pytest.approx(4)]
    assert told["machine"]["cores"] > 0


def test_parts_of_a_run_and_the_growth_of_a_family(results: Results) -> None:
    part_runs = [
        Run(1000, 0.1, 0.01, 0.05, (), dict.fromkeys([part.name for part in BY_NAME["compact"].parts], value))
        for value in (1, 3)
    ]
    results.programs = {
        "compact": {"pulsarium": part_runs},
        "shared-consumers-1": {"pulsarium": [run(0.01), run(0.02)]},
        "shared-consumers-100": {"pulsarium": [run(0.03), run(0.03)]},
    }
    figures = {f.name: f for f in results.figures()}
    assert figures["compact.gap"].median("pulsarium") == 2
    assert figures["compact.gap"].met is True
    assert figures["shared-consumers.growth"].runs == {"pulsarium": pytest.approx([3, 1.5])}
    assert figures["shared-consumers.growth"].met is False
    del results.programs["shared-consumers-1"]
    assert "shared-consumers.growth" not in {f.name for f in results.figures()}


def test_one_broker_has_no_ratios(results: Results) -> None:
    alone = Results(["pulsarium"], results.starts, {"send-sync": {"pulsarium": [run(0.01, 0.001)]}})
    assert all(f.ratios == [] for f in alone.figures())
    assert "better" not in table(alone)


def test_percentiles_of_small_and_large_lists() -> None:
    assert percentile([], 50) == 0
    assert percentile([3], 99) == 3
    assert percentile(list(range(1, 101)), 99) == 99
    assert percentile(list(range(1, 101)), 50) == 50


def of_clients(ours: float, reference: float) -> dict[str, list[Run]]:
    """Return a run of each client: ours at one rate, the others at another one."""
    rates = (ours, ours, reference, reference)
    return {client: [Run(1000, 1000 / rate, 0.5, 0.1, ())] for client, rate in zip(CLIENTS, rates, strict=True)}


def test_our_clients_are_compared_with_the_official_asyncio_module() -> None:
    results = Results(list(CLIENTS), programs={"send-sync": of_clients(300, 100)}, of_clients=True)
    results.programs["send-sync"]["pulsarium, asyncio"] = of_clients(50, 100)["pulsarium, asyncio"]
    figures = {figure.name: figure for figure in results.figures()}
    assert figures["send-sync.rate"].ratios == [pytest.approx(3), pytest.approx(0.5)]
    assert figures["send-sync.rate"].targets == [("1x", False)]
    assert figures["send-sync.cpu"].median("official") == pytest.approx(100)
    assert "send-sync.client-busy" not in figures
    shown = table(results).splitlines()
    assert shown[2].startswith("client CPU, for each message")
    assert next(line for line in shown if "x  1x" in line).endswith("3.00x, 0.50x  1x  MISSED")


@pytest.mark.parametrize(("rate", "met"), [(49_999, False), (50_001, True)])
def test_our_clients_have_a_least_rate_of_batched_messages(rate: float, met: bool) -> None:
    results = Results(list(CLIENTS), programs={"publish-batched": of_clients(rate, 10)}, of_clients=True)
    (figure,) = (each for each in results.figures() if each.name == "publish-batched.rate")
    assert figure.targets == [(">= 50,000", met), ("1x", True)]
    assert figure.met is met


def test_a_part_that_a_broker_cannot_measure_has_no_figure(results: Results) -> None:
    ours, theirs = (
        Run(1000, 0.1, 0.01, 0.05, (), {"v21": 1.0, "v22": 1.0}),
        Run(1000, 0.1, 0.01, 0.05, (), {"v21": 9.0}),
    )
    results.programs = {"compacted-last-id": {"pulsarium": [ours], "pulsar": [theirs]}}
    figures = {figure.name: figure for figure in results.figures()}
    assert (figures["compacted-last-id.v22"].median("pulsar"), figures["compacted-last-id.v22"].ratios) == (None, [])
    assert figures["compacted-last-id.v21"].ratios == [pytest.approx(9)]
