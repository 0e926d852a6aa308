"""WebSockets of a cluster of several brokers."""

from __future__ import annotations

from pulsarium.broker import running

from .player import Play
from .scenarios import message


def test_any_broker_serves_the_topics_of_all() -> None:
    with running(brokers=2) as cluster:
        for number in range(6):
            with Play(cluster.admin_url, f"spread-{number}") as play:
                play.open("c", f"v2/consumer/{play.topic}/sub")
                play.open("p", f"v2/producer/{play.topic}")
                play.send("p", message("x"), 1)
                assert [each["payload"] for each in play.messages("c", 1)] == ["eA=="]
                play.leave()
