"""`pulsarium admin broker-stats`."""

import json
from typing import Any

from .command import Group, Values, argument, get, option
from .output import compact

INDENT = option("--indent", "-i", flag=True, help="Indent the JSON.")


def _json(data: Any, values: Values) -> str:
    return json.dumps(data, indent=4, ensure_ascii=False) if values.indent else compact(data)


def _metrics(data: Any, values: Values) -> str:
    return "\n".join(_json(item, values) for item in data or ())


GROUP = Group(
    "broker-stats",
    "What a broker measures.",
    (
        get(
            "monitoring-metrics",
            "broker-stats/metrics",
            "Show the metrics as monitoring takes them, one group a line.",
            INDENT,
            show=_metrics,
        ),
        get("mbeans", "broker-stats/mbeans", "Show the MBeans.", INDENT, show=_json),
        get(
            "topics",
            "broker-stats/topics",
            "Show the stats of all topics, by namespace and bundle.",
            INDENT,
            show=_json,
            alias="destinations",
            example="--indent",
        ),
        get(
            "allocator-stats",
            "broker-stats/allocator-stats/{allocator}",
            "Show the stats of a memory allocator.",
            argument("allocator"),
            example="default",
        ),
        get("load-report", "broker-stats/load-report", "Show the load report."),
    ),
    examples=("broker-stats topics --indent",),
)
