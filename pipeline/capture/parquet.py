"""Convert one capture file to Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq

from pulsarium.pipeline.capture.rows import TABLES, arrow_schema, batches, everything


def write(capture: Path, out: Path) -> Mapping[str, int]:
    """Write the files into `out`, which is created when missing, and return their numbers of rows by name."""
    out.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(TABLES, 0)
    parts = {name: out / f".{name}.parquet.part" for name in TABLES}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(part, arrow_schema(TABLES[name])))
            for name, part in parts.items()
        }
        for name, batch in batches(everything(str(capture))):
            writers[name].write_batch(batch)
            counts[name] += batch.num_rows
    for name, part in parts.items():
        part.replace(out / f"{name}.parquet")
    return {f"{name}.parquet": count for name, count in counts.items()}
