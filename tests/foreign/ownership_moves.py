"""Helpers for tests of topics that move to another broker."""

from __future__ import annotations

from .admin import Admin
from .broker_process import Address, BrokerProcess

NAMESPACE = "public/moving"


def set_up(brokers: BrokerProcess) -> Admin:
    admin = Admin(brokers.address.admin_url)
    admin.call("PUT", f"/admin/v2/namespaces/{NAMESPACE}", {"bundles": {"numBundles": 16}})
    admin.call("POST", f"/admin/v2/namespaces/{NAMESPACE}/deduplication", True)
    keep_all = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    admin.call("POST", f"/admin/v2/namespaces/{NAMESPACE}/retention", keep_all)
    return admin


def move(admin: Admin, topic: str, to: Address | None) -> None:
    """Unload the topic's bundle to the given broker, or to the one that the next lookup chooses."""
    bundle = admin.text(f"/lookup/v2/topic/{topic.replace('://', '/')}/bundle")
    path = f"/admin/v2/namespaces/{NAMESPACE}/{bundle}/unload"
    admin.call("PUT", path if to is None else f"{path}?destinationBroker=localhost:{to.http_port}")
