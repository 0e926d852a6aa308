from __future__ import annotations

from tests.bench.bench import bench
from yardsticks.bench.pipeline.command import FIRST, JVM, OURS, Figure, table
from yardsticks.bench.pipeline.session import Job, Session


def test_a_comparison_without_the_connector_is_skipped_with_a_reason() -> None:
    run = bench("pipeline", "--against", "jvm")
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines()[-1] == (
        "bench: the comparison with the JVM connector is skipped: pass --jvm-connector JAR"
    )


def test_a_connector_that_does_not_exist_is_an_error() -> None:
    run = bench("pipeline", "--against", "jvm", "--jvm-connector", "none.jar")
    assert run.returncode == 2
    assert "there is no file none.jar" in run.stderr


def test_a_ratio_above_one_means_that_ours_is_faster() -> None:
    first = Figure(FIRST, 7, {JVM: [10.0, 20.0, 30.0], OURS: [10.0]})
    assert table([first, Figure("read 1 KB", 1000, {JVM: [1.0], OURS: [2.0]})]).splitlines()[2:] == [
        f"| {FIRST} | 20.0 s | 10.0 s | 2.00 | 1 |",
        "| read 1 KB | 1,000 | 500 | 0.50 (missed) | 1 |",
    ]


def test_pulsarium_alone_has_no_ratios() -> None:
    assert table([Figure("read 1 KB", 1000, {OURS: [2.0]})]).splitlines()[2:] == ["| read 1 KB | 500 |"]


def test_a_cluster_has_its_figure_per_core_in_brackets() -> None:
    figures = [Figure(FIRST, 7, {"2 workers": [9.0]}), Figure("read 1 KB", 1000, {"2 workers": [2.0]})]
    assert table(figures, {"2 workers": 2}).splitlines()[2:] == [f"| {FIRST} | 9.0 s |", "| read 1 KB | 500 (250) |"]


def test_the_connector_is_not_measured_on_clusters() -> None:
    run = bench("pipeline", "--workers", "1", "2", "--against", "jvm")
    assert run.returncode == 2
    assert "--workers measures reads and writes of this data source" in run.stderr


def test_a_session_reaches_its_process_unchanged() -> None:
    reads, writes = [Job("r", "t", 1, 100, {"minPartitions": "2"})], [Job("w", "t", 1, 100)]
    session = Session("pulsar", ["a.jar"], "local[2]", {"service.url": "u"}, reads, writes)
    assert Session.decode(session.encode()) == session
