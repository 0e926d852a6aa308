"""/lab/masks: what some clients see of the broker."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.lab.masks import MaskError, WornMask, add_from_json, mask_to_json
from pulsarium.broker.lab.rest.find import lab_of, numbered

ROOT = "/lab/masks"


@route("GET", ROOT)
def get_masks(call: Call) -> Reply:
    """All masks, with how many connections have got them. Of those that fit, the last one counts."""
    return json_reply([mask_to_json(worn) for worn in lab_of(call).masks.worn])


@route("POST", ROOT)
def add_mask(call: Call) -> Reply:
    """{"maxProtocolVersion": 19, "clientVersion": "Pulsar-CPP*", ...}: new connections of such clients wear it."""
    try:
        worn = add_from_json(lab_of(call).masks, call.json())
    except MaskError as error:
        raise AdminError(400, str(error)) from None
    return json_reply(mask_to_json(worn))


@route("DELETE", ROOT)
def remove_masks(call: Call) -> Reply:
    """Remove every mask; who is connected keeps what he has."""
    lab_of(call).masks.clear()
    return done()


@route("GET", f"{ROOT}/{{id}}")
def get_mask(call: Call) -> Reply:
    """One mask."""
    return json_reply(mask_to_json(_mask(call)))


@route("DELETE", f"{ROOT}/{{id}}")
def remove_mask(call: Call) -> Reply:
    """Remove it; who is connected keeps what he has."""
    _mask(call).remove()
    return done()


def _mask(call: Call) -> WornMask:
    return numbered(call, "mask", lab_of(call).masks.find, lab_of(call).masks.worn)
