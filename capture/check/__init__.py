"""Check what clients experienced against the promises of Pulsar: loss, duplicates, order, transactions.

Without I/O: the checker gets the records of a capture, as the linter does, and reads them with the linter's state.
"""
