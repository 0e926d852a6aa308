"""The version of Pulsarium; pyproject.toml takes the version from here.

A constant, because reading the installed package's metadata takes a tenth of the broker's time to start.
"""

from __future__ import annotations

VERSION = "0.1.0.dev0"
