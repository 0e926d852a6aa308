"""The reads of `pulsarium why` on brokers that answer, refuse, or break off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pulsarium.rest.exchange import Exchange, RestReply
from pulsarium.rest.why import Facts
from pulsarium.rest.why.reader import WhyReader

BACKLOG = {"subscriptions": {"sub": {"msgBacklog": 1}, "done": {"msgBacklog": 0}}}
DATE = {"date": "Mon, 30 Nov 2026 06:48:31 GMT"}


class Refused(Exception):
    pass


class Played(Exchange):
    """A broker that answers some paths, and all others with a status."""

    unreachable = OSError

    def __init__(self, answers: Mapping[str, Any], otherwise: int = 403, headers: Mapping[str, str] = DATE) -> None:
        super().__init__(["http://test"])
        self.answers, self.otherwise, self.headers = answers, otherwise, headers
        self.asked: list[str] = []

    async def _credentials(self) -> Mapping[str, str]:
        return {}

    def refused(self, reply: RestReply) -> Exception:
        return Refused(reply.status)

    def failed(self, message: str) -> Exception:
        return Refused(message)

    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        assert method == "GET"
        path = url.removeprefix("http://test").partition("?")[0]
        self.asked.append(path)
        if path not in self.answers:
            return RestReply(self.otherwise, self.headers, b'{"reason": "no"}')
        return RestReply(200, self.headers, json.dumps(self.answers[path]).encode())


async def read(broker: Played, subscription: str | None = "sub") -> list[Facts]:
    return await WhyReader(broker).read("t", subscription)


BASE = "/admin/v2/persistent/public/default/t"


@pytest.mark.parametrize("status", [401, 403, 404, 405, 412, 500, 503])
async def test_stats_are_enough_where_all_else_is_refused(status: int) -> None:
    (facts,) = await read(Played({f"{BASE}/stats": BACKLOG}, otherwise=status))
    assert (facts.subscription, facts.of_subscription, facts.now_ms) == ("sub", {"msgBacklog": 1}, 1_796_021_311_000)
    assert (facts.internal, facts.policies, facts.config, facts.transactions) == ({}, {}, {}, {})
    assert facts.peeked == {"status": status, "reason": "no"}


async def test_stats_without_credentials_are_an_error_and_no_answer() -> None:
    with pytest.raises(Refused, match="401"):
        await read(Played({}, otherwise=401))


async def test_a_topic_without_stats_is_refused_with_its_reason() -> None:
    (facts,) = await read(Played({}, otherwise=404))
    assert (facts.subscription, facts.refused) == ("", {"status": 404, "reason": "no"})


async def test_each_partition_is_read() -> None:
    parts = {f"{BASE}-partition-{index}/stats": BACKLOG for index in range(2)}
    found = await read(Played({f"{BASE}/partitions": {"partitions": 2}, **parts}))
    assert [each.topic.rpartition("/")[2] for each in found] == ["t-partition-0", "t-partition-1"]


async def test_without_a_subscription_all_are_read() -> None:
    assert [each.subscription for each in await read(Played({f"{BASE}/stats": BACKLOG}), None)] == ["sub", "done"]


async def test_messages_are_peeked_only_where_a_backlog_is() -> None:
    broker = Played({f"{BASE}/stats": BACKLOG})
    await read(broker, None)
    assert [path for path in broker.asked if path.endswith("/position/1")] == [f"{BASE}/subscription/sub/position/1"]


@pytest.mark.parametrize("headers", [{}, {"date": "yesterday"}])
async def test_a_broker_without_a_date_has_no_time(headers: Mapping[str, str]) -> None:
    (facts,) = await read(Played({f"{BASE}/stats": BACKLOG}, headers=headers))
    assert facts.now_ms is None
