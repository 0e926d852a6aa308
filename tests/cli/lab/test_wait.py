"""`pulsarium wait`."""

from __future__ import annotations

import shlex

from tests.broker.wire import TOPIC
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine
from tests.docs.blocks import ROOT, TESTED, blocks, commands


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


async def test_the_commands_of_the_docs_end_with_their_states() -> None:
    page = blocks(ROOT / "docs" / "lab" / "why.md")
    shown = "".join(each.text for each in page if each.marker == TESTED)
    async with live() as here:
        wire = await here.bed.connect()
        orders = "persistent://public/default/orders"
        await wire.subscribe(orders, "billing")
        await wire.producer(orders)
        await wire.publish_numbered(10)
        await wire.flow()
        await wire.ack(*(each.position for each in await wire.messages(10)))
        asked = [shlex.split(command, comments=True)[1:] for command in commands(shown)]
        assert {name for name, *_ in asked} == {"wait"}
        for name, *arguments in asked:
            assert await LabLine(here, name).said(*arguments) == ""
