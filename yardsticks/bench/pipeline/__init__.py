"""Measure the data source `pulsar`, and compaction on Spark beside the broker's own: scripts/bench pipeline."""
