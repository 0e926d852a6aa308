"""Permissions of roles over REST, and the texts of refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.auth.needs import ANYBODY, SUPERUSER
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.web.routes import all_routes
from tests.broker.auth.secured import bearer, by_token
from tests.broker.commands.authorized import connecting
from tests.broker.commands.coordinators import begin, using
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, Rest, rest_of
from tests.broker.wire import Bed, serving

TOPIC = f"{ADMIN}/persistent/ta/ns/t"
NAMESPACE = f"{NAMESPACES}/ta/ns"


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(by_token()) as bed:
        await prepare(rest_of(bed))
        yield bed


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    return rest_of(bed)


async def prepare(rest: Rest) -> None:
    """Make a tenant with an admin, a namespace, and a topic with a subscription."""
    admin = bearer("admin")
    for method, url, value in (
        ("PUT", f"{TENANTS}/ta", {"adminRoles": ["tadmin"], "allowedClusters": ["standalone"]}),
        ("PUT", NAMESPACE, {}),
        ("PUT", TOPIC, None),
        ("PUT", f"{TOPIC}/subscription/s", "earliest"),
    ):
        answer = await rest.call(method, url, value, **admin)
        assert answer.status == 204, answer


async def grant(rest: Rest, role: str, *actions: str) -> None:
    answer = await rest.call("POST", f"{NAMESPACE}/permissions/{role}", list(actions), **bearer("admin"))
    assert answer.status == 204, answer


async def test_a_role_without_grants_is_refused_in_pulsars_words(rest: Rest) -> None:
    """The test makes one call of each kind. The recorded calls (conformance/rest) are complete."""
    stats = "Unauthorized to validateTopicOperation for operation [GET_STATS] on topic [persistent://ta/ns/t]"
    for method, url, status, text in (
        ("GET", f"{TOPIC}/stats", 401, stats),
        ("DELETE", f"{TOPIC}/truncate", 401, "Don't have permission to administrate resources on this tenant"),
        ("PUT", f"{NAMESPACE}/unload", 401, "This operation requires super-user access"),
        ("GET", f"{ADMIN}/persistent/nope/ns/t/stats", 404, "Tenant does not exist"),
    ):
        answer = await rest.call(method, url, **bearer("user"))
        assert (answer.status, answer.reason) == (status, text)


async def test_admins_of_the_tenant_may_what_is_about_it(rest: Rest) -> None:
    tadmin = bearer("tadmin")
    for method, url, status in (
        ("GET", f"{TENANTS}/ta", 200),
        ("GET", NAMESPACE, 200),
        ("GET", f"{TOPIC}/stats", 200),
        ("GET", f"{TOPIC}-2/stats", 404),
        ("POST", f"{TOPIC}/terminate", 200),
        ("DELETE", f"{TOPIC}/truncate", 204),
        ("GET", f"{TENANTS}/public", 401),
        ("GET", TENANTS, 401),
        ("GET", f"{ADMIN}/brokers", 401),
    ):
        assert (await rest.call(method, url, **tadmin)).status == status, url


async def test_a_tenant_in_the_query_is_the_one_that_is_asked_about(rest: Rest) -> None:
    url = f"{NAMESPACES}/standalone/antiAffinity/group"
    for role, query, status in (("tadmin", "?tenant=ta", 200), ("user", "?tenant=ta", 403), ("tadmin", "", 400)):
        assert (await rest.call("GET", f"{url}{query}", **bearer(role))).status == status, (role, query)


async def test_grants_hold_at_once(rest: Rest) -> None:
    skip = f"{TOPIC}/subscription/s/skip_all"
    assert (await rest.call("POST", skip, **bearer("user"))).status == 401
    await grant(rest, "user", "consume")
    assert (await rest.call("POST", skip, **bearer("user"))).status == 204
    assert (await rest.call("DELETE", TOPIC, **bearer("user"))).status == 403
    await grant(rest, "user")
    assert (await rest.call("POST", skip, **bearer("user"))).status == 401


async def test_names_of_subscriptions_may_have_to_begin_with_the_role(rest: Rest) -> None:
    await grant(rest, "user", "consume")
    mode = await rest.call("POST", f"{NAMESPACE}/subscriptionAuthMode", "Prefix", **bearer("admin"))
    assert mode.status == 204
    answer = await rest.call("PUT", f"{TOPIC}/subscription/mine", "latest", **bearer("user"))
    assert answer.status == 401
    assert "prefixed by the authentication role, like user-xxxx" in answer.reason
    assert (await rest.call("PUT", f"{TOPIC}/subscription/user-1", "latest", **bearer("user"))).status == 204


@pytest.mark.parametrize(
    ("role", "original", "url", "reason"),
    [
        ("proxy", None, f"{NAMESPACE}/unload", "Invalid combination of Original principal"),
        ("proxy", "user", f"{NAMESPACE}/unload", "Proxy not authorized for super-user operation (proxy:proxy)"),
        ("user", "admin", f"{NAMESPACE}/unload", "Invalid combination of Original principal"),
        ("user", "user", f"{NAMESPACE}/unload", "This operation requires super-user access"),
    ],
)
async def test_a_proxy_names_whom_it_speaks_for(
    role: str, original: str | None, url: str, reason: str, rest: Rest
) -> None:
    headers = bearer(role) if original is None else {**bearer(role), "x_original_principal": original}
    answer = await rest.call("PUT", url, **headers)
    assert answer.status == 401
    assert answer.reason.startswith(reason)


async def test_a_proxy_that_is_a_superuser_has_the_rights_of_others() -> None:
    async with serving(by_token(superUserRoles=frozenset({"admin", "proxy"}))) as bed:
        rest = rest_of(bed)
        await prepare(rest)

        async def through(original: str, method: str, url: str) -> int:
            return (await rest.call(method, url, **bearer("proxy"), x_original_principal=original)).status

        assert await through("admin", "GET", TENANTS) == 200
        assert await through("user", "GET", TENANTS) == 401
        assert await through("user", "DELETE", f"{TOPIC}/truncate") == 401
        assert await through("tadmin", "GET", f"{TOPIC}/stats") == 200


async def test_a_role_that_is_none_may_nothing(rest: Rest) -> None:
    nobody = bearer(None)
    need = "Need to authenticate to perform the request"
    for url, status in ((f"{TOPIC}/stats", 401), (f"{NAMESPACE}/topics", 403), (f"{NAMESPACES}/ta", 401)):
        answer = await rest.call("GET", url, **nobody)
        assert (answer.status, answer.reason) == (status, need)
    answer = await rest.call("DELETE", f"{TOPIC}/truncate", **nobody)
    assert (answer.status, answer.reason) == (403, need)


def test_every_route_says_what_it_needs() -> None:
    """A route that declares no needs is for superusers alone, so a topic's route with these needs is a mistake."""
    found = {declared.path for declared, _ in all_routes() if declared.needs == SUPERUSER}
    assert not {path for path in found if "{topic}" in path and not path.startswith(OF_SEGMENTS)}
    opened = {declared.path for declared, _ in all_routes() if declared.needs == ANYBODY}
    assert opened == {
        "/",
        "/console/{file}",
        "/status.html",
        "/metrics",
        "/metrics/",
        f"{ADMIN}/brokers/ready",
        f"{ADMIN}/brokers/version",
        f"{ADMIN}/clusters",
        "/pulsarium/samples",  # the query names the topic, so the handler checks
        *OF_COORDINATORS,
    }


OF_SEGMENTS = (f"{ADMIN}/scalable/", f"{ADMIN}/segments/")  # Pulsar lets superusers alone change segments
TRANSACTIONS = "/admin/v3/transactions"
# Handlers of these routes check the role themselves: some answers depend on the owner of a transaction.
OF_COORDINATORS = (
    f"{TRANSACTIONS}/coordinators",
    f"{TRANSACTIONS}/coordinatorStats",
    f"{TRANSACTIONS}/slowTransactions/{{timeout}}",
    f"{TRANSACTIONS}/coordinatorInternalStats/{{coordinatorId}}",
    f"{TRANSACTIONS}/transactionMetadata/{{mostSigBits}}/{{leastSigBits}}",
)
_READ = """
coordinators coordinatorStats coordinatorStats?coordinatorId=0 slowTransactions/0 slowTransactions/0?coordinatorId=0
coordinatorInternalStats/0 transactionMetadata/0/0 transactionBufferStats/ta/ns/t
transactionBufferInternalStats/ta/ns/t transactionInBufferStats/ta/ns/t/0/0 pendingAckStats/ta/ns/t/s
transactionInPendingAckStats/ta/ns/t/s/0/0 pendingAckInternalStats/ta/ns/t/s positionStatsInPendingAck/ta/ns/t/s/0/0
"""
READ = _READ.split()
ALSO_THERE = {"coordinatorStats", "slowTransactions/0"}  # 4.2.4 refuses these too


async def reading(bed: Bed, role: str) -> dict[str, int]:
    """Begin a transaction, and return the status of each route about transactions for a role."""
    rest = rest_of(bed)
    await prepare(rest)
    await begin(await using(bed, **connecting("admin")))
    return {path: (await rest.call("GET", f"{TRANSACTIONS}/{path}", **bearer(role))).status for path in READ}


@pytest.mark.req("B-29")
async def test_a_role_without_grants_reads_nothing_about_transactions() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True)) as bed:
        assert set((await reading(bed, "nobody")).values()) == {401}


async def test_a_role_without_grants_reads_about_transactions_in_the_released_broker() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True), profile=PULSAR_4_2) as bed:
        found = await reading(bed, "nobody")
        assert {path for path, status in found.items() if status == 401} == ALSO_THERE


async def test_a_role_that_may_use_a_topic_reads_its_transactions() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True)) as bed:
        await reading(bed, "eater")
        await grant(rest_of(bed), "eater", "consume")
        for path in ("transactionBufferStats/ta/ns/t", "pendingAckStats/ta/ns/t/s"):
            assert (await rest_of(bed).call("GET", f"{TRANSACTIONS}/{path}", **bearer("eater"))).status == 200, path


async def test_a_transaction_is_shown_to_its_owner() -> None:
    async with serving(by_token(transactionCoordinatorEnabled=True)) as bed:
        await reading(bed, "admin")
        wire = await bed.connect(**connecting("me"))
        txn = await begin(wire)
        url = f"{TRANSACTIONS}/transactionMetadata/0/{txn['txnid_least_bits']}"
        answer = await rest_of(bed).call("GET", url, **bearer("me"))
        assert (answer.status, answer.json.get("owner")) == (200, "me"), answer
        assert (await rest_of(bed).call("GET", url, **bearer("other"))).status == 401
