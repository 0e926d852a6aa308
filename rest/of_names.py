"""What the policies of namespaces and topics stand on."""

from __future__ import annotations

from pulsarium.rest.group import Group, Namespace, Topic


class OfNamespace(Group):
    """Calls below a namespace."""

    def _path(self, namespace: Namespace, route: str) -> str:
        return f"{self._namespace(namespace)}/{route}"


class OfTopic(Group):
    """Calls below a topic."""

    def _path(self, topic: Topic, route: str) -> str:
        return f"{self._topic(topic)}/{route}"


def of(is_global: bool) -> dict[str, object]:
    """Query of a policy of all clusters."""
    return {"isGlobal": True} if is_global else {}


def asked(applied: bool, is_global: bool) -> dict[str, object]:
    """The same where a policy may be asked for that holds in the end."""
    return {**of(is_global), "applied": applied}
