"""Run scenarios of Pulsarium's own client, one a line: `python -m pulsarium.matrix.python.ours`."""

from __future__ import annotations

from functools import partial

import anyio

from pulsarium.matrix.python.lines import Lines, serve
from pulsarium.matrix.python.ours.acknowledging import ACKNOWLEDGING
from pulsarium.matrix.python.ours.messages import MESSAGES
from pulsarium.matrix.python.ours.reading import READING
from pulsarium.matrix.python.ours.support import Scenario, connected
from pulsarium.matrix.python.ours.topics import TOPICS


def run(scenario: Scenario, cell: Lines) -> None:
    async def body() -> None:
        async with connected(cell) as ours:
            await scenario(cell, ours)

    anyio.run(body, backend="trio")


if __name__ == "__main__":
    everything = {**MESSAGES, **ACKNOWLEDGING, **TOPICS, **READING}
    serve({name: partial(run, scenario) for name, scenario in everything.items()})
