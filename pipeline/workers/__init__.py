"""Module that Python imports before anything else in the processes that a local Spark starts."""
