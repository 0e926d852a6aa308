"""REST calls of /lab/namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import rest_of
from tests.broker.wire import Type, serving


async def test_a_namespace_lives_for_the_length_of_a_test() -> None:
    async with serving() as bed:
        rest, namespaces = rest_of(bed), bed.broker.metadata.namespaces
        body = {"name": "orders", "policies": {"message_ttl_in_seconds": 60}}
        made = [(await rest.call("POST", "/lab/namespaces", value=body)).json["name"] for _ in range(2)]
        assert made == ["public/orders", "public/orders-2"]
        assert namespaces["public/orders"]["message_ttl_in_seconds"] == 60
        wire = await bed.connect()
        await wire.producer(topic="persistent://public/orders/t")
        for name in made:
            await rest.call("DELETE", f"/lab/namespaces/{name}")
        assert [name in namespaces for name in made] == [True, False]  # a client still uses the first one
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await rest.call("DELETE", "/lab/namespaces/public/orders")
        assert made[0] not in namespaces


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": 1},
        {"name": "a", "colour": 1},
        {"name": "a", "policies": {"colour": 1}},
        {"name": "public/default"},
        {"name": "a/b/c"},
        {"name": "/"},
    ],
)
async def test_a_wrong_namespace_is_refused(body: Any) -> None:
    async with serving() as bed:
        assert (await rest_of(bed).call("POST", "/lab/namespaces", value=body)).status == 400
