"""The topics of a namespace, of one domain or of both."""

from collections.abc import Mapping

from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, NamespaceName

from .api import Api

DOMAINS = (PERSISTENT, NON_PERSISTENT)


def listed(
    api: Api,
    namespace: NamespaceName,
    domains: tuple[str, ...] = DOMAINS,
    partitioned: bool = False,
    query: Mapping[str, object] | None = None,
) -> list[str]:
    """Full names in order; with `partitioned` those of partitioned topics. `query` as the route takes it."""
    end = "/partitioned" if partitioned else ""
    asked = {"includeSystemTopic": False, **(query or {})}
    return sorted(
        {name for domain in domains for name in api.call("GET", f"{domain}/{namespace}{end}", query=asked) or ()}
    )
