"""The version of Pulsarium, as in pyproject.toml (a test compares the two).

A constant, because reading the installed package's metadata costs a tenth of the time a broker may take to start.
"""

VERSION = "0.1.0.dev0"
