"""The version of Pulsarium; pyproject.toml takes the version from here.

It is a constant, because reading the installed package's metadata costs a tenth of the time a broker may take to start.
"""

from __future__ import annotations

VERSION = "0.1.0.dev0"
