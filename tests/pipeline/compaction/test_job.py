"""The Spark job keeps the same bytes as the broker's own engine, for hundreds of random topics in a few jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pulsarium.pipeline.compaction.chunks import IN, CompactionTask
from pulsarium.pipeline.compaction.job import JobResult, run
from pulsarium.pipeline.errors import error_line
from tests.broker.model.compaction.sent import Sent, sent
from tests.pipeline.compaction.listed import Entries, at_positions, by_the_broker, out, spool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

topics = st.lists(st.lists(sent, max_size=10), min_size=60, max_size=80)


def of_topic(number: int, entries: Iterable[Sent]) -> list[bytes]:
    """Return the entries of a topic with its number in each key. So many topics can be compacted as one."""
    return [
        replace(each, messages=tuple((key and f"{number}/{key}", value) for key, value in each.messages)).entry
        for each in entries
    ]


@pytest.mark.heavy
@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    st.lists(topics, min_size=2, max_size=2), st.booleans(), st.integers(20, 200), st.sampled_from(["pulsar", "values"])
)
def test_a_job_compacts_as_the_broker_does(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rounds: Sequence[Sequence[Sequence[Sent]]],
    retain_null_key: bool,
    chunk_entries: int,
    shape: str,
) -> None:
    """A job compacts more than a hundred topics. The second round adds to the entries that the first round kept."""
    left: Entries = []
    for ledger_id, published in enumerate(rounds):
        entries = [entry for number, each in enumerate(published) for entry in of_topic(number, each)]
        left = [*left, *at_positions(entries, ledger_id)]
        work = spool(
            tmp_path_factory.mktemp("work"), left, chunk_entries, retain_null_key=retain_null_key, format=shape
        )
        wanted = by_the_broker(left, retain_null_key=retain_null_key, shape=shape)
        result = run(spark, work)
        assert out(work) == wanted.entries
        assert result == JobResult(len(wanted.entries), wanted.removed)
        left = wanted.entries


def test_values_that_are_deleted_and_replaced_between_chunks(spark: SparkSession, tmp_path: Path) -> None:
    values = [b"1", b"", b"", b"2", b"3", b"", b"4", b"5", b"5", b""]
    entries = at_positions((Sent(((key, value),)).entry for value in values for key in ("a", "b", None)), 0)
    wanted = by_the_broker(entries, retain_null_key=True)
    work = spool(tmp_path, entries, 3, retain_null_key=True)
    assert work.chunks == 10
    assert run(spark, work) == JobResult(len(wanted.entries), wanted.removed)
    assert out(work) == wanted.entries


def test_a_topic_without_entries(spark: SparkSession, tmp_path: Path) -> None:
    assert run(spark, CompactionTask(str(tmp_path), 0)) == JobResult()


def test_the_error_of_a_job_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    work = spool(tmp_path, at_positions([Sent((("a", b"1"),)).entry] * 2, 0), 1)
    work.path(IN, 1).unlink()
    with pytest.raises(Exception, match="FileNotFoundError") as raised:
        run(spark, work)
    assert error_line(str(raised.value)).startswith("FileNotFoundError: [Errno 2] ")
    assert "\n" not in error_line(str(raised.value))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Job aborted.\nTraceback\n  File x\nOverflowError: too many\n\n\tat java.lang.Thread\nCaused by: Error: y", 1),
        ("no class at all\nsecond", 0),
        ("", 0),
    ],
)
def test_the_line_of_the_error_is_found_in_the_output_of_a_job(text: str, line: int) -> None:
    wanted = "OverflowError: too many" if line else text.partition("\n")[0]
    assert error_line(text) == wanted
