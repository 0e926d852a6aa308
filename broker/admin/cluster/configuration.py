"""/admin/v2/brokers/configuration: settings that change while brokers run, and where brokers keep what they know."""

from __future__ import annotations

from pulsarium.broker.auth.needs import broker_operation
from pulsarium.broker.config.dynamic import NAMES
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply, nothing

ROOT = "/admin/v2/brokers"
CONFIGURATION = f"{ROOT}/configuration"
LIST = broker_operation("LIST_DYNAMIC_CONFIGURATIONS")
STORE = "rocksdb://pulsarium/metadata"  # by the words of a standalone; there is no such place


@route("GET", f"{CONFIGURATION}/values", needs=LIST)
def get_dynamic_values(call: Call) -> Reply:
    """Settings that were changed while running."""
    return json_reply(call.broker.cluster.dynamic.values)


@route("GET", CONFIGURATION, needs=LIST)
def get_dynamic_names(call: Call) -> Reply:
    """Settings that can be."""
    return json_reply(NAMES)


@route(
    "POST",
    f"{CONFIGURATION}/{{configName}}/{{configValue}}",
    needs=broker_operation("UPDATE_DYNAMIC_CONFIGURATION"),
)
def set_dynamic_value(call: Call) -> Reply:
    """Change one, for all brokers of the cluster."""
    name = call.parameter("configName")
    if name not in NAMES:
        raise AdminError(412, "Can't update non-dynamic configuration")
    call.broker.cluster.dynamic.put(name, call.parameter("configValue"))
    return nothing()


@route("DELETE", f"{CONFIGURATION}/{{configName}}", needs=broker_operation("DELETE_DYNAMIC_CONFIGURATION"))
def delete_dynamic_value(call: Call) -> Reply:
    """Undo a change."""
    name = call.parameter("configName")
    if name not in NAMES:
        raise AdminError(412, "Can't delete non-dynamic configuration")
    call.broker.cluster.dynamic.forget(name)
    return nothing()


@route("GET", f"{ROOT}/internal-configuration", needs=broker_operation("GET_INTERNAL_CONFIGURATION_DATA"))
def get_internal_configuration(call: Call) -> Reply:
    """Where a standalone keeps its metadata."""
    stores = ("zookeeperServers", "configurationStoreServers", "metadataStoreUrl", "configurationMetadataStoreUrl")
    return json_reply({**dict.fromkeys(stores, STORE), "ledgersRootPath": "/ledgers"})
