"""scripts/bench pipeline: the data source `pulsar`, and compaction on Spark beside the broker's own."""
