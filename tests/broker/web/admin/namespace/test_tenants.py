"""/admin/v2/tenants."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, Rest
from tests.broker.wire import Bed

INFO = {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}


@pytest.mark.serving(Config(maxTenants=3))
async def test_a_broker_has_no_more_tenants_than_it_may_have(rest: Rest) -> None:
    await rest.done("PUT", f"{TENANTS}/t", INFO)
    assert await rest.refused("PUT", f"{TENANTS}/u", INFO) == (412, "Exceed the maximum number of tenants")
    assert await rest.refused("PUT", f"{TENANTS}/t", INFO) == (409, "Tenant already exist")
    await rest.done("POST", f"{TENANTS}/t", INFO)
    assert (await rest.call("POST", "/admin/v2/brokers/configuration/maxTenants/4")).status == 200
    await rest.done("PUT", f"{TENANTS}/u", INFO)


@pytest.mark.parametrize("info", [{"adminRoles": "admin"}, {"allowedClusters": [[1]]}, {"allowedClusters": {}}])
async def test_a_tenant_of_wrong_types_is_refused(rest: Rest, info: Any) -> None:
    answer = await rest.call("PUT", f"{TENANTS}/t", info)
    assert answer.status == 400
    assert f'TenantInfoImpl["{next(iter(info))}"]'.encode() in answer.body


async def test_a_tenant_with_namespaces_stays(rest: Rest) -> None:
    await rest.done("PUT", f"{TENANTS}/t", INFO)
    await rest.done("PUT", f"{NAMESPACES}/t/n")
    assert await rest.refused("DELETE", f"{TENANTS}/t") == (409, "The tenant still has active namespaces")
    assert (await rest.refused("DELETE", f"{TENANTS}/t?force=true"))[0] == 405


@pytest.mark.serving(Config(forceDeleteTenantAllowed=True))
async def test_a_tenant_with_a_namespace_of_several_clusters_keeps_all(rest: Rest) -> None:
    clusters = ["standalone", "other"]
    assert (await rest.call("PUT", f"{ADMIN}/clusters/other", {})).status == 200
    await rest.done("PUT", f"{TENANTS}/t", {"allowedClusters": clusters})
    await rest.done("PUT", f"{NAMESPACES}/t/a")
    await rest.done("PUT", f"{NAMESPACES}/t/b", {"replication_clusters": clusters})
    assert (await rest.refused("DELETE", f"{TENANTS}/t?force=true"))[0] == 412
    assert await rest.get(f"{NAMESPACES}/t") == ["t/a", "t/b"]


@pytest.mark.serving(Config(forceDeleteTenantAllowed=True))
async def test_a_tenant_is_deleted_by_force(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", f"{TENANTS}/t", INFO)
    await rest.done("PUT", f"{NAMESPACES}/t/n")
    await rest.done("PUT", "/admin/v2/persistent/t/n/topic")
    await rest.done("PUT", "/admin/v2/persistent/t/n/parts/partitions", 2)
    await rest.done("DELETE", f"{TENANTS}/t?force=true")
    assert await rest.get(TENANTS) == ["public", "pulsar"]
    assert not bed.broker.topics.names("t/n")
    assert not bed.broker.metadata.partitioned
