"""/admin/v2/brokers: which brokers there are, how they are, and how they are configured."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import ANYBODY, broker_operation
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, text_reply

ROOT = "/admin/v2/brokers"


@route("GET", ROOT, f"{ROOT}/{{cluster}}", needs=broker_operation("LIST_BROKERS"))
def get_active_brokers(call: Call) -> Reply:
    """The ids of the brokers that serve; whichever cluster is named, as in Pulsar."""
    return json_reply([broker.web_address for broker in call.broker.cluster.ownership.alive])


@route("GET", f"{ROOT}/leaderBroker", needs=broker_operation("GET_LEADER_BROKER"))
def get_leader(call: Call) -> Reply:
    """The broker that decides for all."""
    address = call.broker.cluster.ownership.leader.web_address
    return json_reply({"serviceUrl": f"http://{address}", "brokerId": address})


@route("GET", f"{ROOT}/health", needs=broker_operation("HEALTH_CHECK"))
def health(call: Call) -> Reply:
    """ok: what answers here can also serve."""
    broker_id = call.query.get("brokerId")
    if broker_id is not None and broker_id != call.broker.web_address:
        raise AdminError(404, f"Broker id '{broker_id}' not found in available brokers.")
    return text_reply("ok")


@route("GET", f"{ROOT}/ready", needs=ANYBODY)
def ready(call: Call) -> Reply:
    """ok once the broker serves, which it does as soon as this can be asked."""
    return text_reply("ok")


@route("GET", f"{ROOT}/version", needs=ANYBODY)
def version(call: Call) -> Reply:
    """The version that clients compare theirs with."""
    return text_reply(call.broker.profile.server_version.removeprefix("Pulsar Server").removeprefix("Pulsarium "))


@route("GET", f"{ROOT}/configuration/runtime", needs=broker_operation("LIST_RUNTIME_CONFIGURATIONS"))
def get_runtime_configuration(call: Call) -> Reply:
    """Every setting in force that this broker honours, as texts, but for those that are secret, as in Pulsar."""
    config = call.broker.config
    shown = (name for name, key in documented_keys().items() if not key.meaning.secret)
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
def check_backlog_quotas(call: Call) -> Reply:
    """Look at backlog quotas now; without quotas there is nothing to be done."""
    return done()
