"""`pulsarium admin resourcegroups` and `resource-quotas`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.output import lines, value
from pulsarium.cli.admin.values import INT, LONG, NAMESPACE
from pulsarium.rest.data import ResourceQuota
from pulsarium.rest.resources import ResourceGroups, ResourceQuotas

resource_groups = CommandsOf(ResourceGroups)

NAME = argument("name", metavar="RESOURCE_GROUP")
of_group = CommandsOf(ResourceGroups, NAME)
# Value of an option: field of ResourceGroup.
_RATES = {
    "msg_publish_rate": "publishRateInMsgs",
    "byte_publish_rate": "publishRateInBytes",
    "msg_dispatch_rate": "dispatchRateInMsgs",
    "byte_dispatch_rate": "dispatchRateInBytes",
}
_OPTIONS = (
    option("--msg-publish-rate", "-mp", type=INT, help="Limit messages published a second; -1: no limit."),
    option("--byte-publish-rate", "-bp", type=LONG, help="Limit bytes published a second; -1: no limit."),
    option("--msg-dispatch-rate", "-md", type=INT, help="Limit messages dispatched a second; -1: no limit."),
    option("--byte-dispatch-rate", "-bd", type=LONG, help="Limit bytes dispatched a second; -1: no limit."),
)


def _rates(values: Values) -> Any:
    """Return the given fields of a ResourceGroup; the broker keeps the others."""
    given = {field: getattr(values, name) for name, field in _RATES.items()}
    return {field: rate for field, rate in given.items() if rate is not None}


_RESOURCE_GROUPS = (
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
        "update", ResourceGroups.update_resource_group, "Change the rates of a resource group.", *_OPTIONS, rates=_rates
    ),
    of_group.does("delete", ResourceGroups.delete_resource_group, "Delete a resource group."),
)


resource_quotas = CommandsOf(ResourceQuotas)


def _of(required: bool = False) -> tuple[click.Option, click.Option]:
    return (
        option("--namespace", "-n", type=NAMESPACE, required=required, help="The namespace."),
        option("--bundle", "-b", metavar="0x..._0x...", required=required, help="A bundle of the namespace."),
    )


def _is_default(values: Values) -> bool:
    if (values.namespace is None) != (values.bundle is None):
        raise click.UsageError("namespace and bundle must be provided together.")
    return values.namespace is None


async def _get(api: Api, values: Values) -> ResourceQuota:
    if _is_default(values):
        return await ResourceQuotas(api).get_default_resource_quota()
    return await ResourceQuotas(api).get_namespace_bundle_resource_quota(values.namespace, values.bundle)


async def _set(api: Api, values: Values) -> None:
    quota: ResourceQuota = {
        "msgRateIn": float(values.msg_rate_in),
        "msgRateOut": float(values.msg_rate_out),
        "bandwidthIn": float(values.bandwidth_in),
        "bandwidthOut": float(values.bandwidth_out),
        "memory": float(values.memory),
        "dynamic": values.dynamic,
    }
    if _is_default(values):
        await ResourceQuotas(api).set_default_resource_quota(quota)
    else:
        await ResourceQuotas(api).set_namespace_bundle_resource_quota(values.namespace, values.bundle, quota)


def _amount(name: str, short: str, help: str) -> click.Option:
    return option(name, short, type=LONG, required=True, help=help)


_RESOURCE_QUOTAS = (
    AdminCommand("get", "Show the quota of a bundle, or the default one.", _get, _of(), value),
    AdminCommand(
        "set",
        "Set the quota of a bundle, or the default one.",
        _set,
        (
            *_of(),
            _amount("--msgRateIn", "-mi", "Messages published a second."),
            _amount("--msgRateOut", "-mo", "Messages dispatched a second."),
            _amount("--bandwidthIn", "-bi", "Bytes published a second."),
            _amount("--bandwidthOut", "-bo", "Bytes dispatched a second."),
            _amount("--memory", "-mem", "Memory in MB."),
            option("--dynamic", "-d", flag=True, help="Let the broker adjust the quota."),
        ),
    ),
    resource_quotas.does(
        "reset-namespace-bundle-quota",
        ResourceQuotas.reset_namespace_bundle_resource_quota,
        "Reset the quota of a bundle to the default.",
        *_of(required=True),
    ),
)

GROUPS = {
    "resourcegroups": CommandGroup(_RESOURCE_GROUPS, examples=("resourcegroups list",)),
    "resource-quotas": CommandGroup(_RESOURCE_QUOTAS, examples=("resource-quotas get",)),
}
