"""/admin/v2/bookies: bookies and their racks. One bookie exists, in name only."""

from __future__ import annotations

from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.jackson.kinds import TEXT, record
from pulsarium.broker.model.namespace.values import DATA
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, request_failed
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply

BOOKIES = "/admin/v2/bookies"
ONE = f"{BOOKIES}/racks-info/{{bookie}}"
RACKS = "/bookies/racks"
PORT = 3181  # bookiePort of a standalone
BOOKIE = record(f"{DATA}.impl.BookieInfoImpl", {"rack": TEXT, "hostname": TEXT})
SLASH_IN_RACK = (
    "Bookie 'rack' parameter is invalid, When `RackawareEnsemblePlacementPolicy` is enabled, the rack name is not "
    "allowed to contain slash (`/`) except for the beginning and end of the rack name string. When "
    "`RegionawareEnsemblePlacementPolicy` is enabled, the rack name can only contain one slash (`/`) except for the "
    "beginning and end of the rack name string."
)


@route("GET", f"{BOOKIES}/all", needs=SUPERUSER)
def get_bookies(call: Call) -> HttpReply:
    """Return the one bookie, as a standalone does."""
    return json_reply({"bookies": [{"bookieId": f"{call.broker.advertised_address}:{PORT}"}]})


@route("GET", f"{BOOKIES}/racks-info", needs=SUPERUSER)
def get_racks(call: Call) -> HttpReply:
    """Return the racks of bookies, by group."""
    return json_reply(call.broker.metadata.records.inside(RACKS))


@route("GET", ONE, needs=SUPERUSER)
def get_rack(call: Call) -> HttpReply:
    """Return the rack of a bookie."""
    bookie = call.parameter("bookie")
    return json_reply(call.broker.metadata.records.get(RACKS, _group_of(call, bookie))[bookie])


@route("POST", ONE, needs=SUPERUSER)
def set_rack(call: Call) -> HttpReply:
    """Set the rack and the group of a bookie."""
    info = call.read(BOOKIE)
    bookie, group = call.parameter("bookie"), call.query.get("group")
    if group is None:
        raise AdminError(412, "Bookie 'group' parameters is missing")
    if info is None:
        raise request_failed()
    if "/" in info.get("rack", "").strip("/"):
        raise AdminError(412, SLASH_IN_RACK)
    records = call.broker.metadata.records
    _remove(call, bookie)
    records.put(RACKS, group, value={**(records.get(RACKS, group) or {}), bookie: info})
    return done()


@route("DELETE", ONE, needs=SUPERUSER)
def delete_rack(call: Call) -> HttpReply:
    """Delete the rack of a bookie."""
    bookie = call.parameter("bookie")
    _group_of(call, bookie)
    _remove(call, bookie)
    return done()


def _group_of(call: Call, bookie: str) -> str:
    for group, bookies in call.broker.metadata.records.inside(RACKS).items():
        if bookie in bookies:
            return group
    raise AdminError(404, f"Bookie rack placement configuration not found: {bookie}")


def _remove(call: Call, bookie: str) -> None:
    """Remove a bookie from its only group. Remove the group when it is empty."""
    records = call.broker.metadata.records
    for group, bookies in records.inside(RACKS).items():
        rest = {name: info for name, info in bookies.items() if name != bookie}
        if not rest:
            records.forget(RACKS, group)
        elif rest != bookies:
            records.put(RACKS, group, value=rest)
