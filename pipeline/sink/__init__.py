"""Write DataFrames and streams into topics.

A row is in its topic once, however often Spark writes the row, because:

- each Spark partition has a producer of its own name, and each row a number that is the same in each attempt
  (`once.py`), so that a broker with deduplication (PIP-6) recognizes rows that it has;
- a row goes to the same partition of the topic in each attempt (`routing.py`);
- of the rows that the broker may have, the last is sent again, and batches begin after it (`sending.py`);
- the rows of a task are the same in the same order in each attempt, or are sorted (`once.py`);
- a stream checks whether the topic deduplicates at all (`once.py`).

There are limits. A broker forgets a producer that has been gone for brokerDeduplicationProducerInactivityTimeoutMinutes
(six hours), so that a batch that is repeated later is stored twice. Rows may be stored twice or lost when a batch is
repeated after its topic got more partitions, or when its source reads other rows the second time.
"""
