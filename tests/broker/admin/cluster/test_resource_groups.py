"""/admin/v2/resourcegroups."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, NAMESPACES, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

URL = f"{ADMIN}/resourcegroups"
DEFAULT = f"{NAMESPACES}/public/default/resourcegroup"
MISSING = f"{NAMESPACES}/public/missing/resourcegroup"
NONE = {"reason": "ResourceGroup does not exist"}
GROUP = {"publishRateInMsgs": 10, "publishRateInBytes": 1000}
SHOWN = GROUP | {"dispatchRateInMsgs": -1, "dispatchRateInBytes": -1}


async def test_their_life(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {URL}", 200, []),
        Step(f"GET {URL}/rg", 404, NONE),
        Step(f"DELETE {URL}/rg", 404, NONE),
        Step(f"PUT {URL}/rg", 204, value=GROUP),
        Step(f"GET {URL}/rg", 200, SHOWN),
        Step(f"PUT {URL}/rg", 204, value={"dispatchRateInMsgs": 5, "publishRateInMsgs": None}),
        Step(f"GET {URL}/rg", 200, SHOWN | {"dispatchRateInMsgs": 5}),
        Step(f"PUT {URL}/a", 204, value={}),
        Step(f"GET {URL}", 200, ["a", "rg"]),
        Step(
            f"PUT {URL}/b",
            400,
            Text("Cannot deserialize value of type `java.lang.Integer`"),
            {"publishRateInMsgs": "x"},
        ),
        Step(f"PUT {URL}/b", 400, Reason("null")),
        Step(f"DELETE {URL}/rg", 204),
        Step(f"GET {URL}", 200, ["a"]),
    )


async def test_a_namespace_in_one(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {DEFAULT}", 200),
        Step(f"POST {DEFAULT}/rg", 412, NONE),
        Step(f"PUT {URL}/rg", 204, value=GROUP),
        Step(f"POST {DEFAULT}/rg", 204),
        Step(f"GET {DEFAULT}", 200, Text("rg")),
        Step(f"DELETE {URL}/rg", 412, {"reason": "ResourceGroup is in use"}),
        Step(f"DELETE {DEFAULT}", 204),
        Step(f"GET {DEFAULT}", 200),
        Step(f"POST {MISSING}/rg", 404, {"reason": "Namespace policies does not exist"}),
        Step(f"DELETE {MISSING}", 404, {"reason": "Namespace policies does not exist"}),
        Step(f"GET {MISSING}", 404, {"reason": "Namespace does not exist"}),
    )
