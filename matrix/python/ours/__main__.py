"""`python -m pulsarium.matrix.python.ours`: its scenarios, a line each."""

from functools import partial

import anyio

from ..lines import Lines, serve
from .acknowledging import ACKNOWLEDGING
from .messages import MESSAGES
from .reading import READING
from .support import Scenario, connected
from .topics import TOPICS


def run(scenario: Scenario, cell: Lines) -> None:
    async def body() -> None:
        async with connected(cell) as ours:
            await scenario(cell, ours)

    anyio.run(body, backend="trio")


if __name__ == "__main__":
    everything = {**MESSAGES, **ACKNOWLEDGING, **TOPICS, **READING}
    serve({name: partial(run, scenario) for name, scenario in everything.items()})
