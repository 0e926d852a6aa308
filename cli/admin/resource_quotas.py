"""`pulsarium admin resource-quotas`."""

from __future__ import annotations

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, CommandsOf, Group, Values, option
from pulsarium.cli.admin.output import value
from pulsarium.cli.admin.values import LONG, NAMESPACE
from pulsarium.rest.data import ResourceQuota
from pulsarium.rest.resources import ResourceQuotas

resource_quotas = CommandsOf(ResourceQuotas)


def _of(required: bool = False) -> tuple[click.Option, click.Option]:
    return (
        option("--namespace", "-n", type=NAMESPACE, required=required, help="The namespace."),
        option("--bundle", "-b", metavar="0x..._0x...", required=required, help="A bundle of it."),
    )


def _is_default(values: Values) -> bool:
    if (values.namespace is None) != (values.bundle is None):
        raise click.UsageError("namespace and bundle must be provided together.")
    return values.namespace is None


async def _get(api: Api, values: Values) -> ResourceQuota:
    if _is_default(values):
        return await api.resource_quotas.get_default_resource_quota()
    return await api.resource_quotas.get_namespace_bundle_resource_quota(values.namespace, values.bundle)


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
        await api.resource_quotas.set_default_resource_quota(quota)
    else:
        await api.resource_quotas.set_namespace_bundle_resource_quota(values.namespace, values.bundle, quota)


def _amount(name: str, short: str, help: str) -> click.Option:
    return option(name, short, type=LONG, required=True, help=help)


GROUP = Group(
    "resource-quotas",
    "Resource quotas of bundles, which load balancing goes by.",
    (
        Command("get", "Show the quota of a bundle, or the default one.", _get, _of(), value),
        Command(
            "set",
            "Set the quota of a bundle, or the default one.",
            _set,
            (
                *_of(),
                _amount("--msgRateIn", "-mi", "Messages in, a second."),
                _amount("--msgRateOut", "-mo", "Messages out, a second."),
                _amount("--bandwidthIn", "-bi", "Bytes in, a second."),
                _amount("--bandwidthOut", "-bo", "Bytes out, a second."),
                _amount("--memory", "-mem", "Memory in MB."),
                option("--dynamic", "-d", flag=True, help="Let the broker adjust it."),
            ),
        ),
        resource_quotas.does(
            "reset-namespace-bundle-quota",
            ResourceQuotas.reset_namespace_bundle_resource_quota,
            "Give a bundle the default quota again.",
            *_of(required=True),
        ),
    ),
    examples=("resource-quotas get",),
)
