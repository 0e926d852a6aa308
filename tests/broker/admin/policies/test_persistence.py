"""/admin/v2: how many bookies keep a message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
TOPIC = f"{TOPICS}/t"


def policies(ensemble: int, writes: int, acks: int, rate: float) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": writes,
        "bookkeeperAckQuorum": acks,
        "managedLedgerMaxMarkDeleteRate": rate,
    }


@pytest.mark.parametrize("where", [DEFAULT, TOPIC])
async def test_their_life(rest: Rest, where: str) -> None:
    url, sent = f"{where}/persistence", policies(1, 1, 1, 1.5)
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value={}),
        Step(f"GET {url}", 200, policies(2, 2, 2, -1.0)),
        Step(f"POST {url}", 204, value=sent),
        Step(f"GET {url}", 200, sent),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
    )


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (policies(1, 2, 1, 0), "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)"),
        (policies(3, 2, 3, 0), "Bookkeeper Ensemble (3) >= WriteQuorum (2) >= AckQuorum (3)"),
        (policies(0, 0, 0, -1), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (policies(6, 2, 2, 0), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (policies(5, 0, 0, 0), "Bookkeeper-WriteQuorum must be <= 5 and > 0."),
        (policies(5, 5, 0, 0), "Bookkeeper-AckQuorum must be <= 5 and > 0."),
        ({"bookkeeperEnsemble": None}, "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (None, "persistence policies should not be null"),
    ],
)
async def test_what_is_refused(rest: Rest, sent: Any, reason: str) -> None:
    await rest.done("PUT", TOPIC)
    for where in (DEFAULT, TOPIC):
        await play(
            rest,
            Step(f"POST {where}/persistence", 400, {"reason": reason}, sent),
            Step(f"GET {where}/persistence", 200),
        )


@pytest.mark.parametrize("rate", ["x", True])
async def test_a_rate_that_is_none(rest: Rest, rate: Any) -> None:
    wrong = Text("Cannot deserialize value of type `double`")
    await play(rest, Step(f"POST {DEFAULT}/persistence", 400, wrong, {"managedLedgerMaxMarkDeleteRate": rate}))


async def test_what_is_applied_to_a_topic(rest: Rest) -> None:
    url, sent = f"{TOPIC}/persistence?applied=true", policies(1, 1, 1, 2.0)
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200, policies(1, 1, 1, 0.1)),
        Step(f"POST {DEFAULT}/persistence", 204, value=sent),
        Step(f"GET {url}", 200, sent),
        Step(f"POST {NAMESPACES}/public/missing/persistence", 404, Reason("Namespace does not exist"), sent),
    )
