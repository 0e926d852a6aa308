"""/admin/v2: what schemas must be like."""

from __future__ import annotations

from tests.broker.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
ABSENT = Reason("Namespace does not exist")


async def test_the_older_strategy(rest: Rest) -> None:
    url = f"{DEFAULT}/schemaAutoUpdateCompatibilityStrategy"
    await play(
        rest,
        Step(f"GET {url}", 204),
        Step(f"PUT {url}", 204, value="WRONG"),
        Step(f"GET {url}", 204),
        Step(f"PUT {url}", 204, value="Forward"),
        Step(f"GET {url}", 200, "Forward"),
        Step(f"GET {MISSING}/schemaAutoUpdateCompatibilityStrategy", 404, ABSENT),
    )


async def test_flags_that_always_have_a_value(rest: Rest) -> None:
    for word, unset in (("isAllowAutoUpdateSchema", True), ("schemaValidationEnforced", False)):
        url = f"{DEFAULT}/{word}"
        await play(
            rest,
            Step(f"GET {url}", 200, unset),
            Step(f"POST {url}", 204, value=not unset),
            Step(f"GET {url}", 200, not unset),
            Step(f"POST {url}", 400, Text("Cannot deserialize value of type `boolean`"), "x"),
            Step(f"POST {url}", 400, Text("The request entity cannot be empty.")),
            Step(f"POST {url}", 204, value=None),
            Step(f"GET {url}", 200, False),
            Step(f"POST {MISSING}/{word}", 404, ABSENT, True),
        )


async def test_the_strategy_of_a_topic(rest: Rest) -> None:
    url = f"{TOPIC}/schemaCompatibilityStrategy"
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"GET {url}?applied=true", 200, "FULL"),
        Step(f"PUT {DEFAULT}/schemaCompatibilityStrategy", 204, value="FORWARD"),
        Step(f"GET {url}?applied=true", 200, "FORWARD"),
        Step(f"PUT {url}", 204, value="BACKWARD"),
        Step(f"GET {url}", 200, "BACKWARD"),
        Step(f"GET {url}?isGlobal=true", 200, "BACKWARD"),  # there is but one
        Step(f"GET {url}?applied=true", 200, "BACKWARD"),
        Step(f"PUT {url}", 204, value="WRONG"),
        Step(f"GET {url}", 200),
        Step(f"PUT {url}", 204, value="UNDEFINED"),
        Step(f"GET {url}", 200),
        Step(f"DELETE {url}", 204),
    )


async def test_whether_a_topic_wants_schemas(rest: Rest) -> None:
    url = f"{TOPIC}/schemaValidationEnforced"
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200, False),
        Step(f"POST {DEFAULT}/schemaValidationEnforced", 204, value=True),
        Step(f"GET {url}?applied=true", 200, True),
        Step(f"GET {url}", 200, False),
        Step(f"POST {url}", 204, value=False),
        Step(f"GET {url}?applied=true", 200, False),
        Step(f"POST {url}", 400, Text("The request entity cannot be empty.")),
    )
