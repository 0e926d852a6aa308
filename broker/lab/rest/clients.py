"""/lab/masks and /lab/violations: what some clients see of the broker, and what clients did wrong."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.lab.masks import MaskError, WornMask, add_from_json, mask_to_json
from pulsarium.broker.lab.rest.find import lab_of, numbered

MASKS = "/lab/masks"


@route("GET", MASKS)
def get_masks(call: Call) -> Reply:
    """All masks, with how many connections have got them. Of those that fit, the last one counts."""
    return json_reply([mask_to_json(worn) for worn in lab_of(call).masks.worn])


@route("POST", MASKS)
def add_mask(call: Call) -> Reply:
    """{"maxProtocolVersion": 19, "clientVersion": "Pulsar-CPP*", ...}: new connections of such clients wear it."""
    try:
        worn = add_from_json(lab_of(call).masks, call.json())
    except MaskError as error:
        raise AdminError(400, str(error)) from None
    return json_reply(mask_to_json(worn))


@route("DELETE", MASKS)
def remove_masks(call: Call) -> Reply:
    """Remove every mask; who is connected keeps what he has."""
    lab_of(call).masks.clear()
    return done()


@route("GET", f"{MASKS}/{{id}}")
def get_mask(call: Call) -> Reply:
    """One mask."""
    return json_reply(mask_to_json(_mask(call)))


@route("DELETE", f"{MASKS}/{{id}}")
def remove_mask(call: Call) -> Reply:
    """Remove it; who is connected keeps what he has."""
    _mask(call).remove()
    return done()


def _mask(call: Call) -> WornMask:
    return numbered(call, "mask", lab_of(call).masks.find, lab_of(call).masks.worn)


VIOLATIONS = "/lab/violations"


@route("GET", VIOLATIONS)
def get_violations(call: Call) -> Reply:
    """{"running": ..., "counts": how often each rule was broken, "violations": the first of each rule, in order}."""
    linter = lab_of(call).linter
    found = [each.to_json() for each in linter.violations()]
    return json_reply({"running": linter.running, "counts": dict(linter.counts), "violations": found})


@route("DELETE", VIOLATIONS)
def clear_violations(call: Call) -> Reply:
    """Forget them; clients are judged on."""
    lab_of(call).linter.clear()
    return done()


@route("POST", f"{VIOLATIONS}/start")
def start_linter(call: Call) -> Reply:
    """Judge every connection that is opened from now on."""
    lab_of(call).linter.start()
    return get_violations(call)


@route("POST", f"{VIOLATIONS}/stop")
def stop_linter(call: Call) -> Reply:
    """Judge no more; what was found stays."""
    lab_of(call).linter.stop()
    return get_violations(call)
