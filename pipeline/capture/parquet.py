"""Convert one capture file to Parquet without Spark, in the tables of `Captures`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from pulsarium.pipeline.capture import rows
from pulsarium.pipeline.capture.rows import EXCHANGES, FRAMES, VIOLATIONS, arrow_schema, batches

_TABLES = (
    ("frames", FRAMES, rows.frames),
    ("exchanges", EXCHANGES, rows.exchanges),
    ("violations", VIOLATIONS, rows.violations),
)


def write(capture: Path, out: Path) -> Mapping[str, int]:
    """Write the files into `out`, which is created when missing, and return their numbers of rows by name."""
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, schema, read in _TABLES:
        part = out / f".{name}.parquet.part"
        count = 0
        with pq.ParquetWriter(part, arrow_schema(schema)) as writer:
            for batch in batches(schema, read(str(capture))):
                writer.write_batch(batch)
                count += batch.num_rows
        part.replace(out / f"{name}.parquet")
        counts[f"{name}.parquet"] = count
    return counts
