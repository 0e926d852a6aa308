"""Dead letters: rows that do not fit the schema of their topic, as messages for another topic."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime, time
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from pulsarium.client import StringSchema
from pulsarium.pipeline.columns.encoding import MessageContents
from pulsarium.pipeline.columns.writing import OutgoingRows

SCHEMA = StringSchema()
"""Schema of a topic of dead letters, which are JSON."""
REAL_TOPIC, REASON = "REAL_TOPIC", "REASON"
"""Properties of a dead letter. The first is also that of the client's dead letters."""


def letter(row: pa.RecordBatch, topic: str, reason: str) -> OutgoingRows:
    """Return one row as a dead letter: its columns as JSON, with its topic and the reason as properties."""
    columns = {name: _plain(_value(column)) for name, column in zip(row.schema.names, row.columns, strict=True)}
    data = pa.array([json.dumps(columns, ensure_ascii=False).encode()], pa.large_binary())
    none = np.zeros(1, np.bool_)
    return OutgoingRows(MessageContents(data, none), None, none, None, [{REAL_TOPIC: topic, REASON: reason}])


def _value(column: pa.Array) -> Any:
    """Return the only value of a column, or Arrow's text of it where Python has no such time."""
    try:
        return column[0].as_py()
    except (OverflowError, ValueError):
        return column.to_string(skip_new_lines=True)


def _plain(value: Any) -> Any:
    """Return what JSON has no form for: bytes in base64, times in ISO 8601, and all else as text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    is_known = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))
    return value if is_known else str(value)
