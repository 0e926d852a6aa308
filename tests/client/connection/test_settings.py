"""Options of `connect`: the refused ones, and the effect of the others."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import anyio
import pytest

from pulsarium.client import AuthenticationTLS, AuthenticationToken, connect, errors
from pulsarium.client.connection.settings import ClientOptions, Settings
from pulsarium.client.opening import open_client
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peers, Type


def test_connect_takes_its_options() -> None:
    parameters = inspect.signature(connect).parameters
    assert next(iter(parameters)) == "service_url"
    assert parameters.keys() == {field.name for field in fields(ClientOptions)}
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in list(parameters.values())[1:])


@pytest.mark.parametrize(
    "options",
    [
        {"operation_timeout": 0},
        {"connection_timeout": -1},
        {"starting_backoff_interval": 0},
        {"max_backoff_interval": 0.01},
        {"connection_max_idle": -1},
        {"keep_alive_interval": -1},
        {"memory_limit": -1},
        {"connections_per_broker": 0},
        {"max_lookup_redirects": -1},
        {"description": "x" * 65},
        {"tls_certificate_file_path": "x"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidConfiguration):
        connect("pulsar://a", **options)


def test_the_certificate_may_be_the_authentications() -> None:
    tls = Settings(authentication=AuthenticationTLS("c", "k")).tls
    assert (tls.certificate_file_path, tls.private_key_file_path) == ("c", "k")
    own = Settings(
        authentication=AuthenticationTLS("c", "k"), tls_certificate_file_path="o", tls_private_key_file_path="p"
    )
    assert own.tls.certificate_file_path == "o"


def test_secrets_are_not_shown() -> None:
    assert "s3cret" not in repr(Settings(authentication=AuthenticationToken("s3cret")))


@on_both
async def test_the_client_uses_its_settings() -> None:
    peers = Peers(memory_limit=7, starting_backoff_interval=2, max_backoff_interval=3, admin_url="http://a:8080")
    async with open_client("pulsar://a", peers.settings) as client:
        assert client._core.memory.limit == 7
        assert client._core.brokers.settings.admin_url == "http://a:8080"
        backoff = client._core.brokers.new_backoff()
        first, second = backoff.next(), backoff.next()
        assert 1.8 <= first <= 2
        assert 2.7 <= second <= 3
    peers.close()


@pytest.mark.parametrize(("description", "version"), [("", "Pulsarium-Python"), ("mine", "Pulsarium-Python-mine")])
@on_both
async def test_a_description_is_shown(description: str, version: str) -> None:
    peers = Peers(description=description)
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:
        tasks.start_soon(client._core.brokers.connect_to_any)
        peer = await peers.next()
        assert (await peer.take_in()).client_version == version
        await peer.say(Type.PING)
        await peer.expect(Type.PONG)
    await peer.close()
    peers.close()
