"""Make mask.toml anew from several recordings of a broker: python -P -m pulsarium.conformance.recordings.mask RUN...

Each RUN is a folder that record.py filled, with the same broker and settings as the golden recordings. What the golden
recording and all the runs agree on must come from any broker; the mask names the rest.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulsarium.conformance.recordings.compare import MASK, common, load
from pulsarium.conformance.recordings.releases import PULSAR_4

HEAD = """\
# What a real broker does not repeat; made by mask.py of several recordings, read by compare.py.
#
# [answers.SCENARIO.STREAM] PLACE = how the runs differ there. PLACE counts the golden recording's answers in that
# stream, from 0; the fields named have other values in some run. Such an answer need not come, and in a stream that is
# named here others may come, even where no PLACE is. [texts...] holds in its place when error texts are compared.
"""


def unsteady(gold: Sequence[str], runs: Sequence[Sequence[str]]) -> dict[int, str] | None:
    """Return the places of the golden answers that not every run repeats, each with how; None where all are equal."""
    if all(run == gold for run in runs):
        return None
    steady = list(range(len(gold)))
    for run in runs:
        steady = [steady[place] for place in common([gold[place] for place in steady], run)]
    how: dict[int, set[str]] = {place: set() for place in range(len(gold)) if place not in steady}
    for run in runs:
        for place, words in _changes(gold, run):
            if place in how:
                how[place] |= words
    return {place: ", ".join(sorted(words)) or "comes in another order" for place, words in how.items()}


def _changes(gold: Sequence[str], run: Sequence[str]) -> Iterator[tuple[int, set[str]]]:
    for word, first, last, begin, end in difflib.SequenceMatcher(None, gold, run, autojunk=False).get_opcodes():
        if word in ("replace", "delete"):
            for place, other in itertools.zip_longest(range(first, last), range(begin, end)):
                if place is not None:
                    yield (
                        place,
                        {"lacking"} if other is None else _fields(json.loads(gold[place]), json.loads(run[other])),
                    )


def _fields(one: Any, other: Any, path: str = "") -> set[str]:
    """Return the paths of the fields in which two answers differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = one.keys() | other.keys()
        return set().union(*(_fields(one.get(name), other.get(name), f"{path}.{name}") for name in names))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return set().union(
            *(_fields(a, b, f"{path}.{place}") for place, (a, b) in enumerate(zip(one, other, strict=True)))
        )
    return set() if one == other else {path.removeprefix(".")}


def masks(golden: Path, runs: Sequence[Path], texts: bool) -> dict[tuple[str, str], dict[int, str]]:
    """Return the unsteady answers, by scenario and stream."""
    found = {}
    for path in sorted(golden.glob("[0-9]*.jsonl")):
        expected = load(path, texts)
        again = [load(run / path.name, texts) for run in runs if (run / path.name).exists()]
        for stream in sorted({*expected}.union(*again)):
            how = unsteady(expected.get(stream, []), [said.get(stream, []) for said in again])
            if how is not None:
                found[path.stem, stream] = how
    return found


def written(golden: Path, runs: Sequence[Path]) -> str:
    """Return the text of the mask file."""
    answers, texts = masks(golden, runs, texts=False), masks(golden, runs, texts=True)
    only_texts = {where: how for where, how in texts.items() if answers.get(where, {}).keys() != how.keys()}
    lines = [HEAD]
    for table, found in (("answers", answers), ("texts", only_texts)):
        for (scenario, stream), how in found.items():
            lines += [f'[{table}."{scenario}"."{stream}"]', *_ranges(how), ""]
    return "\n".join(lines)


def _ranges(how: dict[int, str]) -> Iterator[str]:
    places = sorted(how)
    for _, group in itertools.groupby(enumerate(places), lambda each: (each[1] - each[0], how[each[1]])):
        run = [place for _, place in group]
        yield f"{run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}'} = {json.dumps(how[run[0]])}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Make mask.toml anew from several recordings of a real broker.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a folder that record.py filled")
    parser.add_argument("--golden", type=Path, default=PULSAR_4.folder)
    options = parser.parse_args()
    (options.golden / MASK).write_text(written(options.golden, options.runs))


if __name__ == "__main__":
    main()
