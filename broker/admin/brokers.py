"""/admin/v2/brokers: which brokers there are, how they are, and how they are configured."""

from __future__ import annotations

import dataclasses
from typing import Any

from pulsarium.broker.admin.call import Call
from pulsarium.broker.admin.errors import AdminError
from pulsarium.broker.admin.registry import route
from pulsarium.broker.admin.reply import Reply, done, json_reply, text_reply

ROOT = "/admin/v2/brokers"


@route("GET", ROOT, f"{ROOT}/{{cluster}}")
def get_active_brokers(call: Call) -> Reply:
    """The ids of the brokers that serve; whichever cluster is named, as in Pulsar."""
    return json_reply([call.broker.web_address])


@route("GET", f"{ROOT}/leaderBroker")
def get_leader(call: Call) -> Reply:
    """The broker that decides for all."""
    address = call.broker.web_address
    return json_reply({"serviceUrl": f"http://{address}", "brokerId": address})


@route("GET", f"{ROOT}/health")
def health(call: Call) -> Reply:
    """ok: what answers here can also serve."""
    broker_id = call.query.get("brokerId")
    if broker_id is not None and broker_id != call.broker.web_address:
        raise AdminError(404, f"Broker id '{broker_id}' not found in available brokers.")
    return text_reply("ok")


@route("GET", f"{ROOT}/ready")
def ready(call: Call) -> Reply:
    """ok once the broker serves, which it does as soon as this can be asked."""
    return text_reply("ok")


@route("GET", f"{ROOT}/version")
def version(call: Call) -> Reply:
    """The version that clients compare theirs with."""
    return text_reply(call.broker.profile.server_version.removeprefix("Pulsar Server").removeprefix("Pulsarium "))


@route("GET", f"{ROOT}/configuration/runtime")
def get_runtime_configuration(call: Call) -> Reply:
    """Every setting in force that this broker honours, as texts."""
    config = call.broker.config
    return json_reply({each.name: _text(getattr(config, each.name)) for each in dataclasses.fields(config)})


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, frozenset)):
        return ",".join(sorted(value))
    return str(value)


@route("GET", f"{ROOT}/configuration/values")
def get_dynamic_values(call: Call) -> Reply:
    """Settings that were changed while running: none, for none can be."""
    return json_reply({})


@route("GET", f"{ROOT}/configuration")
def get_dynamic_names(call: Call) -> Reply:
    """Settings that can be changed while running."""
    return json_reply([])


@route("POST", f"{ROOT}/configuration/{{configName}}/{{configValue}}")
def set_dynamic_value(call: Call) -> Reply:
    """Change a setting: refused, as Pulsar does for those that it reads at its start."""
    raise AdminError(412, "Can't update non-dynamic configuration")


@route("DELETE", f"{ROOT}/configuration/{{configName}}")
def delete_dynamic_value(call: Call) -> Reply:
    """Undo a change of a setting."""
    raise AdminError(412, "Can't delete non-dynamic configuration")


@route("GET", f"{ROOT}/backlog-quota-check")
def check_backlog_quotas(call: Call) -> Reply:
    """Look at backlog quotas now; without quotas there is nothing to be done."""
    return done()
