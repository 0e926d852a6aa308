"""/admin/v2/brokers: brokers, their health and settings, and their shutdown. /status.html, for probes."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import ANYBODY, broker_operation
from pulsarium.broker.config.dynamic import dynamic_names
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.model.namespace.policies import even_boundaries, ranges
from pulsarium.broker.web.admin.namespace.bundles import owned_bundles
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing, text_reply

ROOT = "/admin/v2/brokers"


@route("GET", ROOT, f"{ROOT}/{{cluster}}", needs=broker_operation("LIST_BROKERS"))
def get_active_brokers(call: Call) -> HttpReply:
    """Return the ids of the running brokers. As in Pulsar, any cluster may be named."""
    return json_reply([broker.web_address for broker in call.broker.cluster.ownership.alive])


@route("GET", f"{ROOT}/leaderBroker", needs=broker_operation("GET_LEADER_BROKER"))
def get_leader(call: Call) -> HttpReply:
    """Return the leader broker."""
    address = call.broker.cluster.ownership.leader.web_address
    return json_reply({"serviceUrl": f"http://{address}", "brokerId": address})


@route("GET", f"{ROOT}/health", needs=broker_operation("HEALTH_CHECK"))
def health(call: Call) -> HttpReply:
    """Return ok: a broker that answers here can also serve."""
    broker_id = call.query.get("brokerId")
    if broker_id is not None and broker_id != call.broker.web_address:
        raise AdminError(404, f"Broker id '{broker_id}' not found in available brokers.")
    return text_reply("ok")


@route("GET", f"{ROOT}/ready", needs=ANYBODY)
def ready(call: Call) -> HttpReply:
    """Return ok. A broker answers here only once it serves."""
    return text_reply("ok")


@route("GET", f"{ROOT}/version", needs=ANYBODY)
def version(call: Call) -> HttpReply:
    """Return the version that clients compare theirs with."""
    return text_reply(call.broker.profile.server_version.removeprefix("Pulsar Server").removeprefix("Pulsarium "))


@route("GET", f"{ROOT}/configuration/runtime", needs=broker_operation("LIST_RUNTIME_CONFIGURATIONS"))
def get_runtime_configuration(call: Call) -> HttpReply:
    """Return settings in effect as texts, as Pulsar does, except secret ones and those of proposals that are off."""
    config, on = call.broker.config, {0, *call.broker.profile.proposals}
    shown = (name for name, key in documented_keys().items() if not key.meaning.secret and key.meaning.proposal in on)
    return json_reply({name: _text(getattr(config, name)) for name in shown})


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, frozenset)):
        return ",".join(sorted(value))
    return str(value)


@route("GET", f"{ROOT}/backlog-quota-check", needs=broker_operation("CHECK_BACKLOG_QUOTA"))
def check_backlog_quotas(call: Call) -> HttpReply:
    """Return without a check, because the model checks backlog quotas at intervals."""
    return done()


CONFIGURATION = f"{ROOT}/configuration"
LIST = broker_operation("LIST_DYNAMIC_CONFIGURATIONS")
STORE = "rocksdb://pulsarium/metadata"  # in the words of a standalone; no such store exists


@route("GET", f"{CONFIGURATION}/values", needs=LIST)
def get_dynamic_values(call: Call) -> HttpReply:
    """Return the settings that were changed while running."""
    return json_reply(call.broker.cluster.dynamic.values)


@route("GET", CONFIGURATION, needs=LIST)
def get_dynamic_names(call: Call) -> HttpReply:
    """Return the names of the dynamic settings."""
    return json_reply(_names(call))


def _names(call: Call) -> tuple[str, ...]:
    return dynamic_names(call.broker.profile)


@route(
    "POST",
    f"{CONFIGURATION}/{{configName}}/{{configValue}}",
    needs=broker_operation("UPDATE_DYNAMIC_CONFIGURATION"),
)
def set_dynamic_value(call: Call) -> HttpReply:
    """Change a dynamic setting for all brokers of the cluster."""
    name = call.parameter("configName")
    if name not in _names(call):
        raise AdminError(412, "Can't update non-dynamic configuration")
    call.broker.cluster.dynamic.put(name, call.parameter("configValue"))
    return nothing()


@route("DELETE", f"{CONFIGURATION}/{{configName}}", needs=broker_operation("DELETE_DYNAMIC_CONFIGURATION"))
def delete_dynamic_value(call: Call) -> HttpReply:
    """Undo the change of a dynamic setting."""
    name = call.parameter("configName")
    if name not in _names(call):
        raise AdminError(412, "Can't delete non-dynamic configuration")
    call.broker.cluster.dynamic.forget(name)
    return nothing()


@route("GET", f"{ROOT}/internal-configuration", needs=broker_operation("GET_INTERNAL_CONFIGURATION_DATA"))
def get_internal_configuration(call: Call) -> HttpReply:
    """Return the metadata store of a standalone."""
    stores = ("zookeeperServers", "configurationStoreServers", "metadataStoreUrl", "configurationMetadataStoreUrl")
    return json_reply({**dict.fromkeys(stores, STORE), "ledgersRootPath": "/ledgers"})


STATUS = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
ANSWER_FIRST = 0.1  # seconds between the answer and the shutdown


@route("GET", f"{ROOT}/{{clusterName}}/{{brokerId}}/ownedNamespaces", needs=broker_operation("LIST_OWNED_NAMESPACES"))
def get_owned_namespaces(call: Call) -> HttpReply:
    """Return the bundles that a broker serves, including that of its health checks. Any cluster may be named."""
    broker_id = call.parameter("brokerId")
    for broker in call.broker.cluster.ownership.alive:
        if broker.web_address == broker_id:
            own = (f"pulsar/{broker_id}", ranges(even_boundaries(1))[0])
            return json_reply({"/".join(bundle): STATUS for bundle in (own, *owned_bundles(broker))})
    raise AdminError(404, f"Broker id '{broker_id}' not found in available brokers.")


@route("POST", f"{ROOT}/shutdown", needs=broker_operation("SHUTDOWN"))
async def shutdown(call: Call) -> HttpReply:
    """Unload the bundles of the broker, and stop the broker after the answer."""
    broker = call.broker
    await broker.cluster.unload({*owned_bundles(broker)})
    broker.clock.machine.call_later(ANSWER_FIRST, broker.on_shutdown)
    return done()


@route("GET", "/status.html", needs=ANYBODY)
def status(call: Call) -> HttpReply:
    """Return OK, for load balancers (statusFilePath in Pulsar)."""
    return text_reply("OK", content_type="text/html")
