"""`pulsarium admin bookies`."""

from __future__ import annotations

from pulsarium.cli.admin.command import CommandsOf, Group, Values, option
from pulsarium.rest.brokers import Bookies
from pulsarium.rest.data import BookieInfo

bookies = CommandsOf(Bookies)

BOOKIE = option("--bookie", "-b", required=True, metavar="HOST:PORT", help="Which bookie.")


def _rack(values: Values) -> BookieInfo:
    return {"rack": values.rack} if values.hostname is None else {"rack": values.rack, "hostname": values.hostname}


GROUP = Group(
    "bookies",
    "Bookies and their racks.",
    (
        bookies.shows("racks-placement", Bookies.get_bookies_rack_info, "Show which bookie is in which rack."),
        bookies.shows("list-bookies", Bookies.get_bookies, "List the bookies."),
        bookies.shows("get-bookie-rack", Bookies.get_bookie_rack_info, "Show the rack of a bookie.", BOOKIE),
        bookies.does("delete-bookie-rack", Bookies.delete_bookie_rack_info, "Forget the rack of a bookie.", BOOKIE),
        bookies.does(
            "set-bookie-rack",
            Bookies.update_bookie_rack_info,
            "Say in which rack a bookie is.",
            option("--group", "-g", default="default", help="The group it belongs to."),
            BOOKIE,
            option("--rack", "-r", required=True, help="The rack."),
            option("--hostname", "-hn", help="Its host."),
            example="--bookie localhost:3181 --rack /rack1",
            info=_rack,
        ),
    ),
    examples=("bookies list-bookies",),
)
