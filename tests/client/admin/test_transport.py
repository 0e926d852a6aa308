"""Calls over a transport that the test plays: the role, the address, and the error of a refusal."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import anyio
import httpx
import pytest

from pulsarium.client import (
    AdminError,
    Authentication,
    AuthenticationBasic,
    AuthenticationToken,
    PulsarError,
    connect,
    connect_admin,
)
from pulsarium.client import errors as client_errors
from pulsarium.client.admin import errors
from pulsarium.client.admin.admin import Admin
from pulsarium.client.admin.transport import Transport
from pulsarium.client.connection.tls import Tls
from pulsarium.rest.policies import MESSAGE_TTL, RETENTION
from tests.client.both import on_both

URL = "http://broker:8080"
Handler = Callable[[httpx.Request], httpx.Response]


def admin_of(handler: Handler, url: str = URL, authentication: Authentication | None = None) -> Admin:
    transport = Transport(url, authentication=authentication, tls=Tls())
    transport._http = dict.fromkeys((False, True), httpx.AsyncClient(transport=httpx.MockTransport(handler)))
    return Admin(transport)


@on_both
async def test_names_and_bodies_are_sent_as_the_rest_api_takes_them() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204)

    admin = admin_of(answer)
    await admin.topics.create_partitioned_topic("persistent://t/n/a b%", 4)
    await admin.topics.delete_subscription("t", "s/ü", force=True)
    assert [(request.method, str(request.url)) for request in seen] == [
        ("PUT", f"{URL}/admin/v2/persistent/t/n/a+b%25/partitions?createLocalTopicOnly=false"),
        ("DELETE", f"{URL}/admin/v2/persistent/public/default/t/subscription/s%252F%25C3%25BC?force=true"),
    ]
    assert seen[0].content == b"4"
    assert seen[0].headers["content-type"] == "application/json"
    assert "authorization" not in seen[0].headers


@on_both
async def test_a_token_is_asked_for_with_each_call_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    tokens = iter(["secret-1", "secret-2"])
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json=[])

    caplog.set_level(logging.DEBUG)
    admin = admin_of(answer, authentication=AuthenticationToken(lambda: next(tokens)))
    await admin.tenants.get_tenants()
    await admin.tenants.get_tenants()
    assert seen == ["Bearer secret-1", "Bearer secret-2"]
    with pytest.raises(AdminError, match="failed to give credentials") as failed:
        await admin.tenants.get_tenants()
    assert "secret" not in f"{failed.value!r}{admin!r}{caplog.text}"


@on_both
async def test_a_password_is_sent_as_basic_credentials() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=request.headers["authorization"])

    admin = admin_of(answer, authentication=AuthenticationBasic("u", "p"))
    assert await admin.brokers.get_version() == "Basic dTpw"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.BadRequest),
        (401, errors.NotAuthorized),
        (403, errors.NotAuthorized),
        (404, errors.NotFound),
        (405, errors.NotAllowed),
        (409, errors.Conflict),
        (412, errors.PreconditionFailed),
        (418, errors.UnexpectedAnswer),
        (500, errors.ServerSideError),
        (503, errors.ServerSideError),
    ],
)
@on_both
async def test_each_status_is_raised_as_its_error(status: int, error: type[AdminError]) -> None:
    admin = admin_of(lambda request: httpx.Response(status, json={"reason": "No."}))
    with pytest.raises(PulsarError) as refused:
        await admin.namespaces.get_policies("t/n")
    assert type(refused.value) is error
    assert isinstance(refused.value, AdminError)
    assert (refused.value.status, refused.value.reason, refused.value.args) == (status, "No.", ("No.",))


@on_both
async def test_the_admin_client_refuses_names_that_are_none() -> None:
    admin = admin_of(lambda request: pytest.fail("sent"))
    with pytest.raises(client_errors.InvalidTopicName):
        await admin.topics.get_stats("persistent://x")
    with pytest.raises(client_errors.InvalidTopicName):
        await admin.namespace_policies[RETENTION].get("x")


@on_both
async def test_a_redirect_keeps_method_body_and_credentials() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, str(request.url), request.headers["authorization"], request.content))
        if request.url.host == "broker":
            where = str(request.url.copy_with(host="owner"))
            return httpx.Response(307, headers={"location": where})
        return httpx.Response(204)

    admin = admin_of(answer, authentication=AuthenticationToken("t"))
    await admin.namespace_policies[MESSAGE_TTL].set("t/n", 5)
    assert seen == [
        ("POST", f"http://{host}:8080/admin/v2/namespaces/t/n/messageTTL", "Bearer t", b"5")
        for host in ("broker", "owner")
    ]


@on_both
async def test_redirects_without_end_and_out_of_tls() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(307, headers={"location": f"{URL}/admin/v2/tenants"})

    with pytest.raises(AdminError, match="in a circle"):
        await admin_of(answer).tenants.get_tenants()
    assert len(seen) == 11
    with pytest.raises(AdminError, match="not safe"):
        await admin_of(answer, "https://broker:8443").tenants.get_tenants()
    assert len(seen) == 12


@on_both
async def test_the_next_of_several_is_asked_unless_the_call_was_sent() -> None:
    failure: list[type[httpx.TransportError]] = [httpx.ConnectError]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "a":
            raise failure[0]("broken")
        return httpx.Response(200, json=["t"])

    admin = admin_of(answer, "http://a:1,b:2")
    assert await admin.tenants.get_tenants() == ["t"]
    failure[0] = httpx.ConnectTimeout
    assert await admin.tenants.get_tenants() == ["t"]
    failure[0] = httpx.ReadError
    with pytest.raises(errors.AdminConnectError, match="http://a:1: broken") as failed:
        await admin.tenants.get_tenants()
    assert failed.value.status is None


@on_both
async def test_a_call_is_cancelled() -> None:
    async def forever(request: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    transport = Transport(URL, authentication=None, tls=Tls())
    transport._http = dict.fromkeys((False, True), httpx.AsyncClient(transport=httpx.MockTransport(forever)))
    with anyio.move_on_after(0.01) as scope:
        await Admin(transport).tenants.get_tenants()
    assert scope.cancelled_caught


@pytest.mark.parametrize("url", ["broker:8080", "pulsar://broker:6650", "http://", "http://x:y", "http://u:secret@x:1"])
@on_both
async def test_the_admin_client_refuses_what_is_no_url(url: str) -> None:
    with pytest.raises(client_errors.InvalidUrl) as refused:
        async with connect_admin(url):
            pass
    assert "secret" not in str(refused.value)


@on_both
async def test_files_that_are_not_there() -> None:
    with pytest.raises(client_errors.InvalidConfiguration):
        async with connect_admin("https://broker:8443", tls_trust_certs_file_path="/nowhere.pem"):
            pass


@on_both
async def test_the_admin_client_of_a_client() -> None:
    async with connect("pulsar://broker:6650", admin_url=URL) as client:
        admin = client.admin
        assert client.admin is admin
    with pytest.raises(client_errors.AlreadyClosed):
        _ = client.admin
    async with connect("pulsar://broker:6650") as client:
        with pytest.raises(client_errors.InvalidConfiguration, match="admin_url"):
            _ = client.admin


@on_both
async def test_a_topic_that_shadows_another_has_its_partitions() -> None:
    seen: list[tuple[str, str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, json.loads(request.content or b"null")))
        return httpx.Response(200, json={"partitions": 2})

    await admin_of(answer).topics.create_shadow_topic("shadow", "source")
    properties = {"PULSAR.SHADOW_SOURCE": "persistent://public/default/source"}
    assert seen[1:] == [
        (
            "PUT",
            "/admin/v2/persistent/public/default/shadow/partitions",
            {"partitions": 2, "deleted": False, "properties": properties},
        )
    ]
