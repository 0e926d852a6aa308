"""/admin/v2/scalable/.../permissions: grants on one scalable topic, which its segments share."""

from __future__ import annotations

from pulsarium.broker.admin.namespace.permissions import get_topic_permissions, grant_topic, revoke_topic
from pulsarium.broker.admin.scalable.routes import TOPIC, scalable_route, since_5_0_1
from pulsarium.broker.auth.needs import TENANT_ADMIN
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import Reply


@scalable_route("GET", f"{TOPIC}/permissions", needs=TENANT_ADMIN, offered=since_5_0_1)
def get_permissions(call: Call) -> Reply:
    """Return the actions on a scalable topic by role, granted on the topic or on its namespace."""
    return get_topic_permissions(call)


@scalable_route("POST", f"{TOPIC}/permissions/{{role}}", needs=TENANT_ADMIN, offered=since_5_0_1)
def grant(call: Call) -> Reply:
    """Set the actions that a role is granted on a scalable topic."""
    return grant_topic(call)


@scalable_route("DELETE", f"{TOPIC}/permissions/{{role}}", needs=TENANT_ADMIN, offered=since_5_0_1)
def revoke(call: Call) -> Reply:
    """Revoke a role's actions on a scalable topic."""
    return revoke_topic(call)
