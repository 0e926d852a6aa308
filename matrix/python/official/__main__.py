"""Run scenarios of the official Python client, one a line: `python -m pulsarium.matrix.python.official`."""

from __future__ import annotations

from pulsarium.matrix.python.lines import serve
from pulsarium.matrix.python.official.acknowledging import ACKNOWLEDGING
from pulsarium.matrix.python.official.messages import MESSAGES
from pulsarium.matrix.python.official.reading import READING
from pulsarium.matrix.python.official.topics import TOPICS

if __name__ == "__main__":
    serve({**MESSAGES, **ACKNOWLEDGING, **TOPICS, **READING})
