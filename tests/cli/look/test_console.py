"""Answers of a real Pulsar, which has no console."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pulsarium.cli.admin.asked import AdminRun
from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.look.console import Console
from pulsarium.rest.exchange import RestReply


class Answering:
    """A session whose broker answers each request with one status and body."""

    url = "http://me:secret@host:8080"

    def __init__(self, status: int, body: bytes) -> None:
        self.api = self
        self._reply = RestReply(status, {}, body)

    async def send(self, request: Any) -> RestReply:
        return self._reply


@pytest.mark.parametrize("body", [b"<html>Error 404</html>", b'{"message": "Not Found", "status": "404"}', b""])
def test_a_broker_without_the_routes_is_named_without_its_password(body: bytes) -> None:
    console = Console(cast(AdminRun, Answering(404, body)))
    with pytest.raises(AdminError, match=r"^http://host:8080 is no Pulsarium"):
        console.get("overview")


def test_a_missing_topic_of_pulsarium_is_no_missing_route() -> None:
    console = Console(cast(AdminRun, Answering(404, b'{"reason": "Topic t not found"}')))
    with pytest.raises(ServerError, match="Topic t not found"):
        console.get("topic/persistent/public/default/t")
