"""DataFrames and streams into topics.

What makes a row be there once, however often Spark writes it:

- each Spark partition has a producer of its own name, and each row a number that is the same in each attempt
  (`once.py`), so that a broker that deduplicates (PIP-6) knows what it has;
- a row goes to the same partition of the topic in each attempt (`once.py`);
- rows that the broker may have go out alone, and batches begin behind them (`sending.py`);
- the rows of a task are the same in the same order in each attempt, or are brought into one (`once.py`);
- a stream asks whether the topic deduplicates at all (`once.py`).

What this cannot know: a broker forgets a producer that is gone for brokerDeduplicationProducerInactivityTimeoutMinutes
(six hours), so a batch that is repeated later is there twice. Rows of a batch that is repeated after its topic got more
partitions, or from a source that reads something else then, may be there twice or lost.
"""
