"""`pulsarium admin resource-quotas`."""

from typing import Any

import click

from .api import Api
from .command import Command, Group, Values, delete, option, path_of
from .output import value
from .values import LONG, NAMESPACE


def _of(required: bool = False) -> tuple[click.Option, click.Option]:
    return (
        option("--namespace", "-n", type=NAMESPACE, required=required, help="The namespace."),
        option("--bundle", "-b", metavar="0x..._0x...", required=required, help="A bundle of it."),
    )


def _path(values: Values) -> str:
    if (values.namespace is None) != (values.bundle is None):
        raise click.UsageError("namespace and bundle must be provided together.")
    return path_of("resource-quotas/{namespace}/{bundle}", values) if values.namespace else "resource-quotas"


def _get(api: Api, values: Values) -> Any:
    return api.call("GET", _path(values))


def _set(api: Api, values: Values) -> None:
    body = {
        "msgRateIn": float(values.msg_rate_in),
        "msgRateOut": float(values.msg_rate_out),
        "bandwidthIn": float(values.bandwidth_in),
        "bandwidthOut": float(values.bandwidth_out),
        "memory": float(values.memory),
        "dynamic": values.dynamic,
    }
    api.call("POST", _path(values), body=body)


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
        delete(
            "reset-namespace-bundle-quota",
            "resource-quotas/{namespace}/{bundle}",
            "Give a bundle the default quota again.",
            *_of(required=True),
        ),
    ),
    examples=("resource-quotas get",),
)
