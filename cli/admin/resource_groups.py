"""`pulsarium admin resourcegroups`."""

from __future__ import annotations

from typing import Any

from pulsarium.cli.admin.command import CommandsOf, Group, Values, argument, option
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.values import INT, LONG
from pulsarium.rest.resources import ResourceGroups

resource_groups = CommandsOf(ResourceGroups)

NAME = argument("name", metavar="RESOURCE_GROUP")
of_group = CommandsOf(ResourceGroups, NAME)
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
        resource_groups.shows("list", ResourceGroups.get_resource_groups, "List the resource groups.", show=lines),
        of_group.shows("get", ResourceGroups.get_resource_group, "Show a resource group."),
        of_group.does(
            "create",
            ResourceGroups.create_resource_group,
            "Create a resource group.",
            *_OPTIONS,
            example="rg --msg-publish-rate 100",
            rates=_rates,
        ),
        of_group.does(
            "update",
            ResourceGroups.update_resource_group,
            "Change the rates of a resource group.",
            *_OPTIONS,
            rates=_rates,
        ),
        of_group.does("delete", ResourceGroups.delete_resource_group, "Delete a resource group."),
    ),
    examples=("resourcegroups list",),
)
