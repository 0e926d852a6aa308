"""Compare recorded transcripts with the golden ones: python -P -m pulsarium.conformance.recordings.compare --help.

Only what the broker said counts: its frames and closings, connection by connection, and the REST answers in order.
What the real broker itself does not repeat (`mask.toml`) is no difference. Masked everywhere: times, ledger ids (by
order of first appearance), ports, generated names, sizes of frames, the server's version, highest_sequence_id of plain
receipts; error texts too, unless they are asked for. Record on a fresh broker, all scenarios of a profile in order: ids
and counters depend on it.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pulsarium.conformance.recordings.releases import PULSAR_4

MASK = "mask.toml"

Said: TypeAlias = dict[str, list[str]]
"""The answers of each stream, in order."""

Mask: TypeAlias = Mapping[str, frozenset[int]]
"""Golden answers that need not come, by stream. In a stream with an entry here, other answers may come too."""

TIME = 1_600_000_000_000
ISO = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?")
LATER_FLAGS = ("supports_scalable_topics", "supports_tc_metadata_discovery")
"""Feature flags of Pulsar 5. A broker that was recorded before does not know them; the default profile has them."""
OF_SCALABLE_STATS = '"controllerBroker"'
BY_CHANCE = frozenset({"storageSize", "backlogSize", "load"})
"""Fields of a recording with stats of scalable topics. Their producers' names are generated, and vary in length; a load
is there once all segments of the broker were measured."""
UNEXPECTED = "\n --- An unexpected error occurred in the server ---"
OF_CLIENT = ("tcp_open", "send_failed")
"""Events that the recorder itself brings about."""
NO_LEDGER = (-1, 2**64 - 1)
MASKED = frozenset(
    {"t", "raw", "raw_bytes", "crc32c", "server_version", "publish_time", "broker_timestamp", "highest_sequence_id"}
    | {"request", "consumer_mark_delete_position_time"}
)
TEXTS = frozenset({"message", "reason"})


class _Normal:
    """Gives the ids of one recording the names that they have in every recording."""

    def __init__(self, texts: bool, unknown: frozenset[str]) -> None:
        self._left_out = (MASKED if texts else MASKED | TEXTS) | unknown
        self._ledgers: dict[int, str] = {}
        self._transactions: dict[tuple[Any, Any], str] = {}

    def ledger(self, number: int) -> int | str:
        return number if number in NO_LEDGER else self._ledgers.setdefault(number, f"L{len(self._ledgers)}")

    def of(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if "txnid_least_bits" in value:
                txn = value.get("txnid_most_bits"), value["txnid_least_bits"]
                value = {**value, "txnid_least_bits": self._transactions.setdefault(txn, f"T{len(self._transactions)}")}
            return {k: self.of(v, k) for k, v in value.items() if k not in self._left_out}
        if isinstance(value, list):
            # the entries of a Java map have no order
            entries = sorted(value, key=lambda each: each["segment_id"]) if key == "segment_brokers" else value
            return [self.of(each, key) for each in entries]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if key.lower().endswith("ledgerid"):
                return self.ledger(value)
            return "TIME" if TIME <= value < 10 * TIME else value
        return value

    def _text(self, text: str) -> str:
        if text.startswith("<html>"):  # only its title comes from Pulsar
            return text.partition("<title>")[2].partition("</title>")[0]
        if text.startswith(UNEXPECTED):  # the rest of the text differs by release
            text = text.partition("Stacktrace:")[0].rstrip()
        text = ISO.sub("TIME", text)
        text = re.sub(r"(127\.0\.0\.1|localhost):\d+", "ADDR", text)
        text = re.sub(r"standalone-\d+-\d+", "GEN", text)
        return re.sub(r"\b(\d+):(-?\d+)", self._position, text)

    def _position(self, found: re.Match[str]) -> str:
        number = int(found[1])
        return f"{self.ledger(number)}:{found[2]}" if number in self._ledgers else found[0]


def _stream(line: Mapping[str, Any]) -> str:
    """Return within what order holds: the receipts of a producer, a consumer's messages, all else of a connection.

    So it does within the layouts of a lookup session, and the updates of a watch.
    """
    connection, command = line.get("conn", ""), line.get("cmd") or {}
    if line.get("type") in ("SEND_RECEIPT", "SEND_ERROR"):
        return f"{connection} producer {command.get('producer_id')}"
    if line.get("type") == "SCALABLE_TOPIC_UPDATE":
        return f"{connection} session {command.get('session_id')}"
    if line.get("type") == "WATCH_SCALABLE_TOPICS_UPDATE":
        return f"{connection} watch {command.get('watch_id')}"
    if line.get("type") in ("MESSAGE", "ACTIVE_CONSUMER_CHANGE", "REACHED_END_OF_TOPIC"):
        return f"{connection} consumer {command.get('consumer_id')}"
    return str(connection)


def load(path: Path, texts: bool, unknown: frozenset[str] = frozenset()) -> Said:
    """Read what the broker said, in a form that two brokers can share.

    Leave out the fields of `unknown`. Leave out a layout of a scalable topic that repeats the one before in its
    session, because Pulsar may push a layout again.
    """
    lines = path.read_text().splitlines()[1:]
    if any(OF_SCALABLE_STATS in line for line in lines):
        unknown |= BY_CHANCE
    normal, said = _Normal(texts, unknown), Said()
    layouts: dict[tuple[str, int], Any] = {}
    for text in lines:
        line = json.loads(text)
        for number in re.findall(r'"ledgerId": (\d+)', text):
            normal.ledger(int(number))
        if line.get("dir") == "b2c" or line.get("event", OF_CLIENT[0]) not in OF_CLIENT:
            stream, answer = _stream(line), normal.of(line)
            if line.get("type") == "SCALABLE_TOPIC_UPDATE":
                session = line["conn"], line["cmd"]["session_id"]
                if layouts.get(session) == answer:
                    continue
                layouts[session] = answer
        elif "rest" in line:
            body = normal.of(line.get("body"))
            call = re.sub(r"\b1\d{12}\b", "TIME", line["rest"])
            stream, answer = "REST", {"rest": call, "status": line["status"], "body": body}
        else:
            continue
        said.setdefault(stream, []).append(json.dumps(answer, sort_keys=True))
    return said


def load_masks(folder: Path, texts: bool) -> dict[str, Mask]:
    """Read the mask of each scenario; a folder without a mask file has none."""
    if not (folder / MASK).exists():
        return {}
    table = tomllib.loads((folder / MASK).read_text())
    streams: dict[str, dict[str, Any]] = {name: dict(of) for name, of in table.get("answers", {}).items()}
    for name, of in table.get("texts", {}).items() if texts else ():
        streams.setdefault(name, {}).update(of)
    return {
        name: {stream: frozenset(n for key in which for n in _numbers(key)) for stream, which in of.items()}
        for name, of in streams.items()
    }


def _numbers(key: str) -> range:
    """Return the numbers of `7` or of `20-59`, which includes both ends."""
    first, _, last = key.partition("-")
    return range(int(first), int(last or first) + 1)


def common(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """Return where in `a` the answers stand that both give, in the same order."""
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [place for block in blocks for place in range(block.a, block.a + block.size)]


def apart(
    gold: Sequence[str], unsteady: Collection[int] | None, got: Sequence[str]
) -> tuple[int, list[str], list[str]]:
    """Return how many answers are equal, which of the real broker's are lacking, and which are given beside them."""
    stable = [answer for place, answer in enumerate(gold) if place not in (unsteady or ())]
    same = [stable[place] for place in common(stable, got)]
    extra = Counter(got) - Counter(gold) if unsteady is None else Counter[str]()
    return len(same), list((Counter(stable) - Counter(same)).elements()), list(extra.elements())


@dataclass(frozen=True)
class Comparison:
    """`same` of `total` answers are equal; `answers` names each that differs, `words` shows the differences."""

    same: int
    total: int
    answers: tuple[str, ...]
    words: tuple[str, ...]


def compare(
    golden: Path, other: Path, name: str, texts: bool = False, absent: frozenset[str] = frozenset()
) -> Comparison:
    """Set a scenario of `other` against the golden one, except the fields of `absent`.

    Nothing is equal to what was not recorded.
    """
    path, recorded = other / f"{name}.jsonl", golden / f"{name}.jsonl"
    answered = "".join(line for line in recorded.read_text().splitlines() if '"dir": "b2c"' in line)
    unknown = absent.union(flag for flag in LATER_FLAGS if flag not in answered)
    expected, said = load(recorded, texts, unknown), load(path, texts, unknown) if path.exists() else {}
    mask = load_masks(golden, texts).get(name, {})
    same = total = 0
    answers: list[str] = []
    words: list[str] = []
    for stream in sorted({*expected, *said}):
        gold, got = expected.get(stream, []), said.get(stream, [])
        equal, lacking, extra = apart(gold, mask.get(stream), got)
        total += equal + len(lacking) + len(extra)
        same += equal
        answers += [f"- [{stream}] {answer}" for answer in lacking] + [f"+ [{stream}] {answer}" for answer in extra]
        if lacking or extra:
            difference = difflib.unified_diff(gold, got, "golden", "other", lineterm="", n=1)
            words += [f"--- {name} [{stream}]", *("    " + line[:400] for line in difference)]
    return Comparison(same, total, tuple(answers), tuple(words))


def main() -> None:
    parser = argparse.ArgumentParser(description="Exit 0 when every scenario is equal.")
    parser.add_argument("other", type=Path, help="the folder with the other broker's recordings")
    parser.add_argument("only", nargs="*", help="parts of the scenarios' names")
    parser.add_argument("--golden", type=Path, default=PULSAR_4.folder)
    parser.add_argument("-v", action="store_true", help="show each difference")
    parser.add_argument("--texts", action="store_true", help="compare error texts too")
    parser.add_argument("--answers", action="store_true", help="name each answer that is lacking (-) or too many (+)")
    options = parser.parse_args()
    found: list[Comparison] = []
    for path in sorted(options.golden.glob("[0-9]*.jsonl")):
        if options.only and not any(part in path.stem for part in options.only):
            continue
        result = compare(options.golden, options.other, path.stem, options.texts)
        found.append(result)
        for line in (result.words if options.v else ()) + (result.answers if options.answers else ()):
            print(line)
        word = "equal " if result.same == result.total else "DIFFER"
        absent = "" if (options.other / path.name).exists() else "  (not recorded)"
        print(f"{word} {result.same:4d} of {result.total:4d}  {path.stem}{absent}")
    equal = sum(result.same == result.total for result in found)
    same, total = sum(result.same for result in found), sum(result.total for result in found)
    print(f"{equal} of {len(found)} scenarios equal, {same} of {total} answers ({100 * same / max(1, total):.1f}%)")
    sys.exit(equal != len(found))


if __name__ == "__main__":
    main()
