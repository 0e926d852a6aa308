"""The cluster of a path, which must be known."""

from __future__ import annotations

from pulsarium.broker.admin.cluster import clusters
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError

CLUSTER = "/admin/v2/clusters/{cluster}"
FOLDER = "/admin/clusters"


def existing_cluster(call: Call, status: int = 412) -> str:
    """Its name; `status` when there is none."""
    name = call.parameter("cluster")
    if name not in clusters.names(call.broker):
        raise AdminError(status, f"Cluster {name} does not exist.")
    return name
