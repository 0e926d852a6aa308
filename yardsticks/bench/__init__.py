"""Measure a broker from outside: its start, its memory, and the cost of a message. See scripts/bench."""
