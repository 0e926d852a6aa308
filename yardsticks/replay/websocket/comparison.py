"""Compare what two brokers answered in a WebSocket scenario, line by line."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulsarium.proto.generated.PulsarApi_pb2 import MessageIdData

RECORDED = Path(__file__).with_name("recorded")
TIME = re.compile(r"20[2-9]\d-\d\d-\d\dT[\d:.]+Z")
CLIENT_ERROR = re.compile(r'\{"errorMsg":"(.*?)","reqId":.*?\}', re.DOTALL)
"""The text of a Java client's error, which has the ids and ports of its connection."""
SIZE = re.compile(r"\d+,\d{3},\d{3}")
"""The number of bytes that had arrived when the broker refused a message."""


def recorded(name: str) -> list[dict[str, Any]]:
    """Return the answers of the real broker."""
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]


def differences(name: str, ours: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield each line of a scenario whose answer is not as recorded, in the words of `differs.toml`."""
    wanted, found = _normal(recorded(name)), _normal(ours)
    for number in range(max(len(wanted), len(found))):
        theirs = wanted[number] if number < len(wanted) else "nothing"
        answer = found[number] if number < len(found) else "nothing"
        if answer != theirs:
            yield f"{name} {number + 1}: {answer}, Pulsar {theirs}"


def _normal(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return lines without what belongs to one run: times, ledgers, ports."""
    ledgers: dict[int, str] = {}
    return [json.dumps(_masked(line, ledgers), sort_keys=True, ensure_ascii=False) for line in lines]


def _masked(value: Any, ledgers: dict[int, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked(each, ledgers, name) for name, each in value.items()}
    if isinstance(value, list):
        parts = [_masked(each, ledgers) for each in value]
        return sorted(parts, key=json.dumps)
    if not isinstance(value, str):
        return value
    if key == "messageId":
        return _message_id(value, ledgers)
    if key == "remoteConnection":
        return "ADDRESS"
    if key == "subscriptionName" and value.startswith("reader-"):
        return "READER"
    if key == "publishTime":
        return TIME.sub("TIME", value)
    if key in ("ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME"):
        ledger, _, rest = value.partition(":")
        return f"{ledgers.setdefault(int(ledger), f'L{len(ledgers)}')}:{rest}"
    return SIZE.sub("SIZE", CLIENT_ERROR.sub(r"\1", value), count=1)


def _message_id(text: str, ledgers: dict[int, str]) -> str:
    """Return the fields of an id that are present, with the ledger by its first appearance."""
    data = MessageIdData.FromString(base64.b64decode(text))
    fields = {field.name: value for field, value in data.ListFields()}
    fields["ledgerId"] = ledgers.setdefault(data.ledgerId, f"L{len(ledgers)}")
    return " ".join(f"{name}={value}" for name, value in fields.items())
