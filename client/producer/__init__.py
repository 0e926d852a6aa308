"""Publish messages: batches, chunks, receipts and the choice of a partition."""
