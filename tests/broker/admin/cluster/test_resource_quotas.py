"""/admin/v2/resource-quotas."""

from __future__ import annotations

from tests.broker.admin.rest import ADMIN, NAMESPACES, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

URL = f"{ADMIN}/resource-quotas"
BUNDLE = "0x00000000_0x40000000"
ONE = f"{URL}/public/default/{BUNDLE}"
STANDARD = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100000.0,
    "bandwidthOut": 300000.0,
    "memory": 80.0,
    "dynamic": True,
}
QUOTA = STANDARD | {"msgRateIn": -1.0, "dynamic": False}
JUNK = {"reason": "Invalid bundle range: junk"}
WHOLE = Reason(
    f"Invalid upper boundary for bundle public/missing/{BUNDLE}. Expected upper boundary of public/missing/0x00"
)


async def test_of_a_bundle(rest: Rest) -> None:
    zeros = dict.fromkeys(STANDARD, 0.0) | {"dynamic": True, "memory": 1.0}
    await play(
        rest,
        Step(f"GET {ONE}", 200, STANDARD),
        Step(f"POST {ONE}", 204, value=QUOTA),
        Step(f"GET {ONE}", 200, QUOTA),
        Step(f"POST {ONE}", 204),
        Step(f"GET {ONE}", 200, QUOTA),
        Step(f"POST {ONE}", 204, value={"memory": 1}),
        Step(f"GET {ONE}", 200, zeros),
        Step(f"POST {ONE}", 400, Text("Cannot deserialize value of type `double`"), {"memory": "x"}),
        Step(f"DELETE {ONE}", 204),
        Step(f"GET {ONE}", 200, STANDARD),
    )


async def test_of_bundles_that_there_are_not(rest: Rest) -> None:
    junk, missing = f"{URL}/public/default/junk", f"{URL}/public/missing/{BUNDLE}"
    await play(
        rest,
        Step(f"GET {junk}", 412, JUNK),
        Step(f"POST {junk}", 412, JUNK, QUOTA),
        Step(f"DELETE {junk}", 412, JUNK),
        Step(f"GET {missing}", 412, WHOLE),
        Step(f"POST {missing}", 412, WHOLE, QUOTA),
        Step(f"DELETE {missing}", 412, WHOLE),
    )


async def test_the_default(rest: Rest) -> None:
    await play(
        rest,
        Step(f"GET {URL}", 200, STANDARD),
        Step(f"POST {URL}", 204, value=QUOTA),
        Step(f"GET {URL}", 200, QUOTA),
        Step(f"GET {ONE}", 200, QUOTA),
        Step(f"POST {URL}", 204),
        Step(f"GET {URL}", 200, QUOTA),
    )


async def test_they_go_with_their_namespace(rest: Rest) -> None:
    url = f"{URL}/public/n/{BUNDLE}"
    await play(
        rest,
        Step(f"PUT {NAMESPACES}/public/n", 204),
        Step(f"POST {url}", 204, value=QUOTA),
        Step(f"DELETE {NAMESPACES}/public/n", 204),
        Step(f"PUT {NAMESPACES}/public/n", 204),
        Step(f"GET {url}", 200, STANDARD),
    )
