"""/admin/v2/brokers: what one broker serves, and its end."""

from __future__ import annotations

from pulsarium.broker.admin.namespace.owned import owned_bundles
from pulsarium.broker.auth.needs import broker_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.namespace.bundles import even_boundaries, ranges

ROOT = "/admin/v2/brokers"
STATUS = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
ANSWER_FIRST = 0.1  # seconds


@route("GET", f"{ROOT}/{{clusterName}}/{{brokerId}}/ownedNamespaces", needs=broker_operation("LIST_OWNED_NAMESPACES"))
def get_owned_namespaces(call: Call) -> Reply:
    """The bundles that a broker serves, with the one of its health checks; whichever cluster is named."""
    broker_id = call.parameter("brokerId")
    for broker in call.broker.cluster.ownership.alive:
        if broker.web_address == broker_id:
            own = (f"pulsar/{broker_id}", ranges(even_boundaries(1))[0])
            return json_reply({"/".join(bundle): STATUS for bundle in (own, *owned_bundles(broker))})
    raise AdminError(404, f"Broker id '{broker_id}' not found in available brokers.")


@route("POST", f"{ROOT}/shutdown", needs=broker_operation("SHUTDOWN"))
async def shutdown(call: Call) -> Reply:
    """Unload what the broker serves, and end it once this is answered."""
    broker = call.broker
    await broker.cluster.unload({*owned_bundles(broker)})
    broker.clock.machine.call_later(ANSWER_FIRST, broker.on_shutdown)
    return done()
