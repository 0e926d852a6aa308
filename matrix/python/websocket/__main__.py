"""Run scenarios of websocket-client, one a line: `python -m pulsarium.matrix.python.websocket`."""

from __future__ import annotations

from pulsarium.matrix.python.lines import serve
from pulsarium.matrix.python.websocket.acknowledging import ACKNOWLEDGING
from pulsarium.matrix.python.websocket.messages import MESSAGES
from pulsarium.matrix.python.websocket.topics import TOPICS

if __name__ == "__main__":
    serve({**MESSAGES, **ACKNOWLEDGING, **TOPICS})
