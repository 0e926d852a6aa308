"""Credentials of HTTP clients, which all paths of Pulsar require."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.auth.secured import BASIC, PASSWORDS, TLS, TOKEN, base64_of, bearer, by_token, token
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Type, serving

OTHER = b"another key that is long enough for it"


def all_three(**keys: Any) -> Config:
    users = f"data:;base64,{base64_of(PASSWORDS.encode())}"
    return by_token(authenticationProviders=(BASIC, TLS, TOKEN), basicAuthConf=users, **keys)


@pytest.fixture
async def rest() -> AsyncIterator[Rest]:
    async with serving(all_three()) as bed:
        yield rest_of(bed)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer junk"},
        {"authorization": "Bearer "},
        bearer("admin", key=OTHER),
        bearer("admin", exp=1000),
        {"authorization": "Basic eDp5"},
        {"authorization": "Digest x"},
        {"authorization": f"Basic {base64.b64encode(b'admin:wrong').decode()}"},
    ],
    ids=["none", "junk", "blank", "other key", "expired", "nobody", "other scheme", "wrong password"],
)
@pytest.mark.parametrize("url", [TENANTS, f"{TOPICS}/t/stats", f"{ADMIN}/nothing", "/lookup/v2/topic/x", "/topics/x"])
async def test_credentials_that_prove_nothing_are_refused(url: str, headers: dict[str, str], rest: Rest) -> None:
    answer = await rest.call("GET", url, **headers)
    assert answer.status == 401
    assert answer.json["message"] == "Authentication required"
    assert (answer.json["url"], answer.json["status"]) == (url, "401")
    assert "www-authenticate" not in answer.headers
    assert (await rest.call("PUT", url, **headers)).status == 401


async def test_tokens_and_passwords_prove_a_role(rest: Rest) -> None:
    assert (await rest.call("GET", TENANTS, **bearer("admin"))).status == 200
    assert (await rest.call("GET", f"{TENANTS}?token={token('admin')}")).status == 200
    basic = base64.b64encode(b"admin:123456").decode()
    assert (await rest.call("GET", TENANTS, authorization=f"Basic {basic}")).status == 200
    named = await rest.call("GET", TENANTS, **bearer("admin"), x_pulsar_auth_method_name="basic")
    assert (named.status, named.json["message"]) == (401, 'Authentication token has to be started with "Basic "')


@pytest.mark.parametrize("url", ["/", "/status.html", "/metrics/"])
async def test_pages_and_metrics_are_open(url: str, rest: Rest) -> None:
    assert (await rest.call("GET", url)).status == 200


async def test_any_role_may_see_versions_and_clusters(rest: Rest) -> None:
    for url in (f"{ADMIN}/brokers/ready", f"{ADMIN}/brokers/version", f"{ADMIN}/clusters"):
        assert (await rest.call("GET", url)).status == 401
        assert (await rest.call("GET", url, **bearer("user"))).status == 200


@pytest.mark.serving(by_token(authenticateMetricsEndpoint=True))
async def test_metrics_may_need_credentials(bed: Bed) -> None:
    rest = rest_of(bed)
    assert (await rest.call("GET", "/metrics/")).status == 401
    assert (await rest.call("GET", "/metrics/", **bearer("user"))).status == 200


@pytest.mark.serving(by_token(anonymousUserRole="anonymous"))
async def test_a_client_that_proves_nothing_may_be_anonymous(bed: Bed) -> None:
    rest = rest_of(bed)
    answer = await rest.call("GET", TENANTS, authorization="Bearer junk")
    assert "clientAppId [anonymous]" in answer.reason


@pytest.mark.serving(Config())
async def test_no_credentials_are_asked_for_unless_that_is_on(bed: Bed) -> None:
    rest = rest_of(bed)
    assert (await rest.call("GET", TENANTS, authorization="Bearer junk")).status == 200


@pytest.mark.serving(by_token(authorizationEnabled=False))
async def test_authentication_alone_lets_any_role_do_all(bed: Bed) -> None:
    rest = rest_of(bed)
    assert (await rest.call("GET", TENANTS)).status == 401
    assert (await rest.call("GET", TENANTS, **bearer("whoever"))).status == 200


async def test_no_secret_is_in_the_log_nor_in_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    config = all_three()
    right, wrong = token("admin"), token("admin", key=OTHER)
    basic = base64.b64encode(b"admin:hush").decode()
    kept = [str(config.tokenSecretKey), str(config.basicAuthConf), PASSWORDS[20:40]]
    secrets = [right, wrong, basic, "hush", *kept]
    with caplog.at_level(logging.DEBUG):
        async with serving(config) as bed:
            rest = rest_of(bed)
            answers = [
                await rest.call("GET", url, **headers)
                for url in (TENANTS, f"{TENANTS}?token={wrong}", f"{ADMIN}/brokers/configuration/runtime", NAMESPACES)
                for headers in (
                    {"authorization": f"Bearer {right}"},
                    {"authorization": f"Bearer {wrong}"},
                    {"authorization": f"Basic {basic}"},
                    {"authorization": f"Basic {basic}", "x_pulsar_auth_method_name": "basic"},
                )
            ]
            for data in (right.encode(), wrong.encode(), b"admin:hush"):
                wire = bed.dial()
                method = "basic" if b":" in data else "token"
                fields: dict[str, Any] = {"auth_method_name": method, "auth_data": data}
                await wire.send(Type.CONNECT, client_version="x", protocol_version=21, **fields)
                await wire.next()
                await wire.aclose()
    said = caplog.text + repr(config) + "".join(answer.body.decode() for answer in answers)
    assert "refused a request without valid credentials" in said
    assert [secret for secret in secrets if secret in said] == []
