"""Ask whether connections of a cluster call a lab."""

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.session.session import Sessions


def is_attended(cluster: Cluster) -> bool:
    sessions = cluster.attached(Sessions)
    return bool(sessions.opened or sessions.connecting)
