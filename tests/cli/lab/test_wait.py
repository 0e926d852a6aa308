"""`pulsarium wait`."""

from __future__ import annotations

from tests.broker.wire import TOPIC
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine


async def test_waiting_ends_with_the_state_or_says_what_there_is() -> None:
    async with live() as here:
        wait = LabLine(here, "wait")
        wire = await here.bed.connect()
        await wire.subscribe()
        assert await wait.said("t", "--subscription", "sub", "--state", "connected") == ""
        await wire.aclose()
        assert await wait.said("t", "-s", "sub", "--state", "no-consumer") == ""
        late = await wait.run("t", "-s", "sub", "--state", "connected", "--timeout", "0")
        assert (late.exit_code, late.stdout) == (1, "")
        assert late.stderr == (
            f"pulsarium: waited 0 s: not connected: sub of {TOPIC} has 0 of 1 consumers; consumers: none\n"
        )
        wrong = await wait.run("t", "-s", "sub", "--state", "produced")
        assert "a subscription has no state 'produced'; there are exists, absent" in wrong.stderr
