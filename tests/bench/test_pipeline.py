from __future__ import annotations

from bench.pipeline.against import FIRST, JVM, OURS, table
from bench.pipeline.one_session import Read, Session, Write
from tests.bench.bench import bench


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
    found = {FIRST: {JVM: [10.0, 20.0, 30.0], OURS: [10.0]}, "read 1 KB": {JVM: [1000.0], OURS: [500.0]}}
    assert table(found).splitlines()[2:] == [
        f"| {FIRST} | 20.0 s | 10.0 s | 2.00 |",
        "| read 1 KB | 1,000 | 500 | 0.50 |",
    ]


def test_a_session_reaches_its_process_unchanged() -> None:
    session = Session("pulsar", ["a.jar"], {"service.url": "u"}, [Read("r", "t", 1, {})], [Write("w", "t", 1, 100)])
    assert Session.decode(session.encode()) == session
