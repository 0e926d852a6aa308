"""/admin/v2: the dispatch rate of one subscription."""

from __future__ import annotations

from tests.broker.admin.policies.test_rates import DEFAULT, NONE, RATE
from tests.broker.admin.rest import NON_PERSISTENT, TOPICS, Rest
from tests.broker.admin.steps import Reason, Step, play
from tests.broker.wire import Bed

TOPIC = f"{TOPICS}/t"
URL = f"{TOPIC}/sub%2F1/dispatchRate"
OTHER = RATE | {"dispatchThrottlingRateInMsg": 7}


async def test_its_life(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {URL}", 200),
        Step(f"GET {URL}?applied=true", 200, NONE),
        Step(f"POST {URL}", 204, value={}),  # it limits nothing
        Step(f"POST {URL}", 204),
        Step(f"GET {URL}", 200),
        Step(f"POST {URL}", 204, value=RATE),
        Step(f"GET {URL}", 200, RATE),
        Step(f"GET {TOPIC}/other/dispatchRate", 200),
        Step(f"DELETE {URL}", 204),
        Step(f"GET {URL}", 200),
    )
    assert bed.broker.metadata.topic_policies == {}


async def test_what_is_set_for_all_subscriptions_is_applied(rest: Rest) -> None:
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"POST {DEFAULT}/subscriptionDispatchRate", 204, value=OTHER),
        Step(f"GET {URL}?applied=true", 200, OTHER),
        Step(f"POST {TOPIC}/subscriptionDispatchRate", 204, value=RATE),
        Step(f"GET {URL}?applied=true", 200, RATE),
        Step(f"GET {URL}", 200),
    )


async def test_topics_that_there_are_not(rest: Rest) -> None:
    for topics in (TOPICS, NON_PERSISTENT):
        domain = topics.split("/")[3]
        absent = Reason(f"Topic {domain}://public/default/absent not found")
        url = f"{topics}/absent/s/dispatchRate"
        await play(
            rest,
            Step(f"GET {url}", 404, absent),
            Step(f"POST {url}", 404, absent, RATE),
            Step(f"DELETE {url}", 404, absent),
        )
