"""Values that a real broker does not repeat, and how the comparison leaves them out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pulsarium.conformance.recordings.compare import apart, compare, load, load_masks
from pulsarium.conformance.recordings.mask import main, unsteady, written
from pulsarium.conformance.recordings.releases import PULSAR_4

HEAD = '{"scenario": "s"}'


def recording(folder: Path, answers: Sequence[object]) -> Path:
    """Write what a broker said on connection A."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"t": 1, "conn": "A", "dir": "b2c", "type": "X", "cmd": answer}) for answer in answers]
    (folder / "001-s.jsonl").write_text("\n".join([HEAD, *lines]) + "\n")
    return folder


@pytest.mark.parametrize(
    ("run", "how"),
    [
        (['{"a": 1}', '{"b": 2}'], None),
        (['{"a": 1}'], {1: "lacking"}),
        (['{"a": 1}', '{"b": [3]}'], {1: "b"}),
        (['{"a": 1}', '{"b": 2}', '{"c": 3}'], {}),
        (['{"b": 2}', '{"a": 1}'], {1: "lacking"}),
    ],
)
def test_an_answer_is_unsteady_where_a_run_does_not_repeat_it(run: list[str], how: dict[int, str] | None) -> None:
    assert unsteady(['{"a": 1}', '{"b": 2}'], [run]) == how


def test_fields_that_differ_are_named_by_their_paths() -> None:
    gold, run = '{"a": {"b": [1, 2]}, "c": 1}', '{"a": {"b": [1, 3]}, "d": 1}'
    assert unsteady([gold], [[run]]) == {0: "a.b.1, c, d"}


def test_an_unsteady_answer_is_no_difference_and_others_may_come_beside_it() -> None:
    assert apart(["a", "b"], frozenset({1}), ["a", "c"]) == (1, [], [])
    assert apart(["a", "b"], frozenset({1}), ["c"]) == (0, ["a"], [])
    assert apart(["a", "b"], None, ["a", "c"]) == (1, ["b"], ["c"])


def test_a_mask_made_of_several_recordings_leaves_out_what_they_disagree_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = [{"n": 0}, {"message": "one"}]
    golden = recording(tmp_path / "golden", [*steady, {"n": 1}, {"n": 2}])
    run = recording(tmp_path / "run", [{"n": 0}, {"message": "two"}, {"n": 3}, {"n": 4}])
    monkeypatch.setattr("sys.argv", ["mask", str(run), "--golden", str(golden)])
    main()
    assert '[answers."001-s"."A"]\n2-3 = "cmd.n"' in (golden / "mask.toml").read_text()
    assert load_masks(golden, texts=False) == {"001-s": {"A": {2, 3}}}
    assert load_masks(golden, texts=True) == {"001-s": {"A": {1, 2, 3}}}
    assert compare(golden, run, "001-s").answers == ()
    other = recording(tmp_path / "other", [{"n": 9}, *steady[1:]])
    assert [answer[:7] for answer in compare(golden, other, "001-s").answers] == ["- [A] {"]


def test_a_mask_of_recordings_that_agree_is_empty(tmp_path: Path) -> None:
    golden = recording(tmp_path / "golden", [{"n": 0}])
    assert "[answers" not in written(golden, [golden]).replace("# [answers", "")


@pytest.mark.parametrize("texts", [False, True])
def test_the_mask_names_answers_that_were_recorded(texts: bool) -> None:
    strangers = []
    for name, streams in load_masks(PULSAR_4.folder, texts).items():
        said = load(PULSAR_4.folder / f"{name}.jsonl", texts)
        strangers += [(name, stream) for stream, places in streams.items() for n in places if n >= len(said[stream])]
    assert strangers == []


@pytest.mark.parametrize(("stats", "left"), [({"controllerBroker": "b"}, {}), ({}, {"storageSize": 7})])
def test_sizes_count_except_in_stats_of_scalable_topics(
    tmp_path: Path, stats: dict[str, str], left: dict[str, int]
) -> None:
    path = recording(tmp_path, [{"storageSize": 7, **stats}]) / "001-s.jsonl"
    (said,) = load(path, texts=False)["A"]
    assert json.loads(said)["cmd"] == {**left, **stats}
