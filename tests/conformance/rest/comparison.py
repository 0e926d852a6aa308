"""How far an answer is from the recorded one."""

from __future__ import annotations

import re
from typing import Any

from .recording import Answer, Call, Level

VOLATILE = re.compile(
    r"(time|timestamp|date|rate|throughput|size|bytes|address|version|since|age|ledger|id$|counter|cpu|memory|usage|port|url)",
    re.IGNORECASE,
)
"""Keys whose values belong to one run: times, ids, rates, sizes, addresses."""

NAME = re.compile(r"[:/\d]")
"""A key with one of these is a name that somebody gave, such as a topic's; so it is in a map."""

PLACE = re.compile(r"-?\d+:-?\d+|standalone-\d+-\d+|.*(localhost|127\.0\.0\.1):\d+.*", re.DOTALL)
"""A position, a generated name or an address, which belong to one run whatever their key."""

TEXT_OF_ERROR = "reason"


def difference(call: Call, answer: Answer, level: Level = "shape") -> str:
    """Why `answer` is not the recorded one, or an empty string.

    At level `shape` the status and the structure count: empty, text, or JSON with the same keys and types all the way
    down. `values` compares what does not belong to one run, `texts` the reasons of errors too.
    """
    golden = call.golden
    if answer.status == 0:
        return str(answer.body)
    if answer.status != golden.status:
        return f"status {answer.status}, Pulsar {golden.status}{_because(golden, answer)}"
    if level == "status" or not call.compared or call.method == "HEAD":
        return ""
    values = level != "shape"
    if kinds := _kinds(golden, answer):
        return kinds
    if headers := _unlike(shape(dict(golden.kept), values), shape(dict(answer.kept), values), "header "):
        return headers
    if found := _unlike(shape(golden.body, values), shape(answer.body, values), ""):
        return found
    if values and golden.content_type != answer.content_type:
        return f"Content-Type {answer.content_type!r}, Pulsar {golden.content_type!r}"
    if level == "texts" and (said := _reason(golden)) != _reason(answer):
        return f"reason {_reason(answer)!r}, Pulsar {said!r}"
    return ""


def _because(golden: Answer, answer: Answer) -> str:
    """The reasons that come with two statuses."""
    reasons = [str(_reason(each) or "-")[:200] for each in (answer, golden)]
    return "" if reasons == ["-", "-"] else f" ({reasons[0]}; Pulsar: {reasons[1]})"


def _reason(answer: Answer) -> object:
    """The text of an error, without the port of the broker that tells it."""
    text = answer.body.get(TEXT_OF_ERROR) if isinstance(answer.body, dict) else None
    return re.sub(r"localhost:\d+", "localhost", text) if isinstance(text, str) else text


def _kinds(golden: Answer, answer: Answer) -> str:
    said, wanted = (
        "nothing" if each.body == "" and not each.plain else "text" if each.plain else "JSON"
        for each in (answer, golden)
    )
    return "" if said == wanted else f"{said}, Pulsar {wanted}"


def shape(value: Any, values: bool, key: str = "") -> Any:
    """What of an answer counts: keys and types, with `values` also what is no time, id, rate, size or address.

    A map from names is the value of its first name under "*", a list is its first element; texts in one have no order.
    """
    if isinstance(value, dict):
        if set(value) == {TEXT_OF_ERROR}:
            return {TEXT_OF_ERROR: "str"}
        if value and all(NAME.search(name) for name in value):
            return {"*": shape(value[min(value)], values)}
        return {name: shape(part, values, name) for name, part in value.items()}
    if isinstance(value, list):
        if values and not VOLATILE.search(key) and all(isinstance(part, str) for part in value):
            return sorted(value)
        return [shape(value[0], values, key)] if value else []
    if values and not VOLATILE.search(key) and isinstance(value, str | int | bool):
        return _text(value) if isinstance(value, str) else value
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _text(value: str) -> str:
    """A text that is compared; where in a body its parser stopped is not."""
    return "place" if PLACE.fullmatch(value) else re.sub(r"column: \d+", "column: ...", value)


def _unlike(golden: Any, other: Any, where: str) -> str:
    """The first place where two shapes differ, in words."""
    if isinstance(golden, dict) and isinstance(other, dict):
        if lacking := sorted(golden.keys() - other.keys()):
            return f"{where}lacks {', '.join(lacking)}"
        if extra := sorted(other.keys() - golden.keys()):
            return f"{where}has {', '.join(extra)}, which Pulsar's has not"
        parts = (_unlike(golden[name], other[name], f"{where}{name}: ") for name in golden)
        return next(filter(None, parts), "")
    if isinstance(golden, list) and isinstance(other, list) and golden and other:
        parts = (_unlike(golden[i], other[i], f"{where}[{i}]: ") for i in range(min(len(golden), len(other))))
        if found := next(filter(None, parts), ""):
            return found
    if golden == other and type(golden) is type(other):
        return ""
    return f"{where}{_short(other)}, Pulsar {_short(golden)}"


def _short(value: object) -> str:
    text = "an object" if isinstance(value, dict) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
