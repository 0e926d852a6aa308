"""Measures a broker from outside: how fast it starts, what it weighs, what a message costs it. See scripts/bench."""
