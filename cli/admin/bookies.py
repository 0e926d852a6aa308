"""`pulsarium admin bookies`."""

from __future__ import annotations

from pulsarium.cli.admin.command import Group, Values, does, option, shows
from pulsarium.rest.data import BookieInfo

BOOKIE = option("--bookie", "-b", required=True, metavar="HOST:PORT", help="Which bookie.")


def _rack(values: Values) -> BookieInfo:
    return {"rack": values.rack} if values.hostname is None else {"rack": values.rack, "hostname": values.hostname}


GROUP = Group(
    "bookies",
    "Bookies and their racks.",
    (
        shows(
            "racks-placement", lambda api, v: api.bookies.get_bookies_rack_info(), "Show which bookie is in which rack."
        ),
        shows("list-bookies", lambda api, v: api.bookies.get_bookies(), "List the bookies."),
        shows(
            "get-bookie-rack",
            lambda api, v: api.bookies.get_bookie_rack_info(v.bookie),
            "Show the rack of a bookie.",
            BOOKIE,
        ),
        does(
            "delete-bookie-rack",
            lambda api, v: api.bookies.delete_bookie_rack_info(v.bookie),
            "Forget the rack of a bookie.",
            BOOKIE,
        ),
        does(
            "set-bookie-rack",
            lambda api, v: api.bookies.update_bookie_rack_info(v.bookie, _rack(v), group=v.group),
            "Say in which rack a bookie is.",
            option("--group", "-g", default="default", help="The group it belongs to."),
            BOOKIE,
            option("--rack", "-r", required=True, help="The rack."),
            option("--hostname", "-hn", help="Its host."),
            example="--bookie localhost:3181 --rack /rack1",
        ),
    ),
    examples=("bookies list-bookies",),
)
