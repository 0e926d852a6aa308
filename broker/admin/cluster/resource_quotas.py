"""/admin/v2/resource-quotas: what a bundle is reckoned to need. Kept and shown."""

from __future__ import annotations

from pulsarium.broker.admin.namespace.owned import named_bundle
from pulsarium.broker.admin.policies.values import BOOL, DATA, DOUBLE, record
from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.namespace.metadata import RESOURCE_QUOTAS

QUOTAS = "/admin/v2/resource-quotas"
ONE = f"{QUOTAS}/{{tenant}}/{{namespace}}/{{bundle}}"
DEFAULT = "default"
STANDARD = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100000.0,
    "bandwidthOut": 300000.0,
    "memory": 80.0,
    "dynamic": True,
}
NUMBERS = tuple(STANDARD)[:5]
QUOTA = record(
    f"{DATA}.ResourceQuota",
    {**dict.fromkeys(NUMBERS, DOUBLE), "dynamic": BOOL},
    {**dict.fromkeys(NUMBERS, 0.0), "dynamic": True},
)


@route("GET", QUOTAS, needs=SUPERUSER)
def get_default(call: Call) -> Reply:
    """What a bundle needs of which nothing is said."""
    return json_reply(call.broker.metadata.records.get(RESOURCE_QUOTAS, DEFAULT) or STANDARD)


@route("POST", QUOTAS, needs=SUPERUSER)
def set_default(call: Call) -> Reply:
    """Say what that is."""
    quota = QUOTA.read(call)
    if quota is not None:
        call.broker.metadata.records.put(RESOURCE_QUOTAS, DEFAULT, value=quota)
    return done()


@route("GET", ONE, needs=SUPERUSER)
def get_quota(call: Call) -> Reply:
    """What one bundle needs."""
    quota = call.broker.metadata.records.get(RESOURCE_QUOTAS, call.namespace, named_bundle(call, anywhere=True))
    return get_default(call) if quota is None else json_reply(quota)


@route("POST", ONE, needs=SUPERUSER)
def set_quota(call: Call) -> Reply:
    """Say what it is."""
    quota = QUOTA.read(call)
    bundle = named_bundle(call, anywhere=True)
    if quota is not None:
        call.broker.metadata.records.put(RESOURCE_QUOTAS, call.namespace, bundle, value=quota)
    return done()


@route("DELETE", ONE, needs=SUPERUSER)
def delete_quota(call: Call) -> Reply:
    """Forget it."""
    call.broker.metadata.records.forget(RESOURCE_QUOTAS, call.namespace, named_bundle(call, anywhere=True))
    return done()
