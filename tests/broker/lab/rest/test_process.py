"""REST calls of /lab/process."""

from __future__ import annotations

from trio.testing import wait_all_tasks_blocked

from tests.broker.admin.rest import rest_of
from tests.broker.wire import Bed


async def test_closed_connections_leave_no_session(bed: Bed) -> None:
    rest = rest_of(bed)
    before = await rest.get("/lab/process")
    assert before["sessions"] == 0
    wire = await bed.connect()
    more = await rest.get("/lab/process?census=true")
    assert more["sessions"] == 1
    assert more["tasks"] > before["tasks"]
    assert more["objects"]["pulsarium.broker.session.session.Session"] >= 1
    await wire.aclose()
    await wait_all_tasks_blocked()
    after = await rest.get("/lab/process")
    assert (after["sessions"], after["tasks"]) == (0, before["tasks"])
