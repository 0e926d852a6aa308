"""`pulsarium admin resourcegroups`."""

from __future__ import annotations

from typing import Any

from pulsarium.cli.admin.command import Group, Values, argument, does, option, shows
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.values import INT, LONG

NAME = argument("resource_group")
_PATH = "resourcegroups/{resource_group}"
# Option, field of ResourceGroup.
_RATES = {
    "msg_publish_rate": "publishRateInMsgs",
    "byte_publish_rate": "publishRateInBytes",
    "msg_dispatch_rate": "dispatchRateInMsgs",
    "byte_dispatch_rate": "dispatchRateInBytes",
}
_OPTIONS = (
    option("--msg-publish-rate", "-mp", type=INT, help="Messages published a second; -1 is without limit."),
    option("--byte-publish-rate", "-bp", type=LONG, help="Bytes published a second; -1 is without limit."),
    option("--msg-dispatch-rate", "-md", type=INT, help="Messages dispatched a second; -1 is without limit."),
    option("--byte-dispatch-rate", "-bd", type=LONG, help="Bytes dispatched a second; -1 is without limit."),
)


def _rates(values: Values) -> Any:
    """A ResourceGroup; what is not said stays as it is."""
    given = {field: getattr(values, name) for name, field in _RATES.items()}
    return {field: rate for field, rate in given.items() if rate is not None}


GROUP = Group(
    "resourcegroups",
    "Resource groups: rates that namespaces share.",
    (
        shows(
            "list", lambda api, v: api.resource_groups.get_resource_groups(), "List the resource groups.", show=lines
        ),
        shows(
            "get",
            lambda api, v: api.resource_groups.get_resource_group(v.resource_group),
            "Show a resource group.",
            NAME,
        ),
        does(
            "create",
            lambda api, v: api.resource_groups.create_resource_group(v.resource_group, _rates(v)),
            "Create a resource group.",
            NAME,
            *_OPTIONS,
            example="rg --msg-publish-rate 100",
        ),
        does(
            "update",
            lambda api, v: api.resource_groups.update_resource_group(v.resource_group, _rates(v)),
            "Change the rates of a resource group.",
            NAME,
            *_OPTIONS,
        ),
        does(
            "delete",
            lambda api, v: api.resource_groups.delete_resource_group(v.resource_group),
            "Delete a resource group.",
            NAME,
        ),
    ),
    examples=("resourcegroups list",),
)
