"""Who gets which entry, and when: one module for each way of sharing a subscription."""
