"""/admin/v2/bookies."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, Rest
from tests.broker.admin.steps import PAGE, Reason, Step, Text, play

RACKS = f"{ADMIN}/bookies/racks-info"
B1, B2 = f"{RACKS}/b1%3A3181", f"{RACKS}/b2%3A3181"
RACK = {"rack": "/rack1", "hostname": "h1"}


def missing(bookie: str) -> dict[str, str]:
    return {"reason": f"Bookie rack placement configuration not found: {bookie}"}


async def test_there_is_one(rest: Rest) -> None:
    assert await rest.get(f"{ADMIN}/bookies/all") == {"bookies": [{"bookieId": "localhost:3181"}]}


async def test_racks(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {RACKS}", 200, {}),
        Step(f"GET {B1}", 404, missing("b1:3181")),
        Step(f"POST {B1}?group=g1", 204, value=RACK),
        Step(f"POST {B2}", 412, {"reason": "Bookie 'group' parameters is missing"}, RACK),
        Step(f"POST {B2}?group=g1", 204, value={"rack": "/", "hostname": "h"}),
        Step(f"POST {B2}?group=g1", 204, value={}),
        Step(f"POST {B2}?group=g1", 412, Reason("Bookie 'rack' parameter is invalid"), {"rack": "/a/b"}),
        Step(f"POST {B2}?group=g1", 400, Text(PAGE)),
        Step(f"GET {RACKS}", 200, {"g1": {"b1:3181": RACK, "b2:3181": {}}}),
        Step(f"GET {B1}", 200, RACK),
        Step(f"POST {B1}?group=g2", 204, value=RACK),
        Step(f"GET {RACKS}", 200, {"g1": {"b2:3181": {}}, "g2": {"b1:3181": RACK}}),
        Step(f"DELETE {B1}", 204),
        Step(f"DELETE {B1}", 404, missing("b1:3181")),
        Step(f"DELETE {B2}", 204),
        Step(f"GET {RACKS}", 200, {}),
    )
