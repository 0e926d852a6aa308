"""`pulsarium admin resourcegroups`."""

from .command import Group, Values, argument, delete, get, option, put
from .output import lines
from .values import INT, LONG

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


def _rates(values: Values) -> dict[str, int]:
    """What is not said stays as it is."""
    given = {field: getattr(values, name) for name, field in _RATES.items()}
    return {field: rate for field, rate in given.items() if rate is not None}


GROUP = Group(
    "resourcegroups",
    "Resource groups: rates that namespaces share.",
    (
        get("list", "resourcegroups", "List the resource groups.", show=lines),
        get("get", _PATH, "Show a resource group.", NAME),
        put(
            "create",
            _PATH,
            "Create a resource group.",
            NAME,
            *_OPTIONS,
            body=_rates,
            example="rg --msg-publish-rate 100",
        ),
        put("update", _PATH, "Change the rates of a resource group.", NAME, *_OPTIONS, body=_rates),
        delete("delete", _PATH, "Delete a resource group.", NAME),
    ),
    examples=("resourcegroups list",),
)
