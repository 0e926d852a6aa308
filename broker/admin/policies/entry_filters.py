"""/admin/v2: filters of entries, of namespaces and of topics. There are none here, so none can be set."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import Json, NamespacePolicy, TopicPolicy
from pulsarium.broker.admin.policies.values import DATA, TEXT, Kind, record
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError

NAME = "entryFilterNames"
RIGHT = "ENTRY_FILTERS"
WHAT = "Filters that entries pass before they are dispatched"

_RECORD = record(f"{DATA}.EntryFilters", {NAME: TEXT})
ENTRY_FILTERS = Kind(
    _RECORD.java_type, lambda value: {NAME: value} if isinstance(value, str) else _RECORD.of(value), is_object=True
)


def check_filters(call: Call, kept: Json, value: Any) -> None:
    """Refuse filters, which nobody brought."""
    if value is None:
        return
    names = [name.strip() for name in value.get(NAME, "").split(",") if name.strip()]
    if not names:
        raise AdminError(400, f"{NAME} can't be empty. To remove entry filters use the remove method.")
    raise AdminError(400, f"Entry filter '{names[0]}' not found")


NAMESPACE_FILTERS = (NamespacePolicy("entryFilters", "entryFilters", RIGHT, WHAT, ENTRY_FILTERS, check_filters),)
TOPIC_FILTERS = (
    TopicPolicy(
        "entryFilters", "entryFilters", RIGHT, WHAT, ENTRY_FILTERS, check_filters, default=lambda config: {NAME: ""}
    ),
)
