"""`pulsarium admin bookies`."""

from .command import Group, Values, delete, get, option, post

BOOKIE = option("--bookie", "-b", required=True, metavar="HOST:PORT", help="Which bookie.")


def _rack(values: Values) -> dict[str, str]:
    return {"rack": values.rack, **({"hostname": values.hostname} if values.hostname is not None else {})}


GROUP = Group(
    "bookies",
    "Bookies and their racks.",
    (
        get("racks-placement", "bookies/racks-info", "Show which bookie is in which rack."),
        get("list-bookies", "bookies/all", "List the bookies."),
        get("get-bookie-rack", "bookies/racks-info/{bookie}", "Show the rack of a bookie.", BOOKIE),
        delete("delete-bookie-rack", "bookies/racks-info/{bookie}", "Forget the rack of a bookie.", BOOKIE),
        post(
            "set-bookie-rack",
            "bookies/racks-info/{bookie}",
            "Say in which rack a bookie is.",
            option("--group", "-g", default="default", help="The group it belongs to."),
            BOOKIE,
            option("--rack", "-r", required=True, help="The rack."),
            option("--hostname", "-hn", help="Its host."),
            query={"group": "group"},
            body=_rack,
            example="--bookie localhost:3181 --rack /rack1",
        ),
    ),
    examples=("bookies list-bookies",),
)
