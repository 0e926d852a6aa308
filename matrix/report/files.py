"""What a run leaves in its folder: matrix.html, matrix.md, matrix.json, and matrix.parquet where pyarrow is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pulsarium.matrix.cell import Result
from pulsarium.matrix.report.html import html
from pulsarium.matrix.report.markdown import markdown
from pulsarium.matrix.report.table import Table


def write(results: Sequence[Result], folder: Path) -> list[Path]:
    """The files it wrote."""
    table = Table(results)
    texts = {
        "matrix.html": html(table),
        "matrix.md": f"# Compatibility matrix\n\n{markdown(table)}",
        "matrix.json": "[\n" + ",\n".join(json.dumps(result.row()) for result in results) + "\n]\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    written = [folder / name for name in texts]
    if find_spec("pyarrow") is not None:
        _parquet(results, folder / "matrix.parquet")
        written.append(folder / "matrix.parquet")
    return written


def _parquet(results: Sequence[Result], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.string()
    names = ("scenario", "client", "profile", "mask", "outcome", "reason", "capture", "log")
    schema = pa.schema([*((name, text) for name in names), ("seconds", pa.float64())])
    pq.write_table(pa.Table.from_pylist([result.row() for result in results], schema=schema), path)
