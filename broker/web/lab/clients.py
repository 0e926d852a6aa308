"""/lab/masks and /lab/violations: mask the broker from clients, and list the mistakes of clients."""

from __future__ import annotations

from pulsarium.broker.lab.masks import MaskError, WornMask, add_from_json, mask_to_json
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.lab.find import lab_of, numbered

MASKS = "/lab/masks"


@route("GET", MASKS)
def get_masks(call: Call) -> HttpReply:
    """List all masks, with how many connections have received each. The newest matching mask applies."""
    return json_reply([mask_to_json(worn) for worn in lab_of(call).masks.worn])


@route("POST", MASKS)
def add_mask(call: Call) -> HttpReply:
    """Add a mask for new connections: {"maxProtocolVersion": 19, "clientVersion": "Pulsar-CPP*", ...}."""
    try:
        worn = add_from_json(lab_of(call).masks, call.json())
    except MaskError as error:
        raise AdminError(400, str(error)) from None
    return json_reply(mask_to_json(worn))


@route("DELETE", MASKS)
def remove_masks(call: Call) -> HttpReply:
    """Remove every mask. Open connections keep theirs."""
    lab_of(call).masks.clear()
    return done()


@route("GET", f"{MASKS}/{{id}}")
def get_mask(call: Call) -> HttpReply:
    """Show a mask."""
    return json_reply(mask_to_json(_mask(call)))


@route("DELETE", f"{MASKS}/{{id}}")
def remove_mask(call: Call) -> HttpReply:
    """Remove a mask. Open connections keep it."""
    _mask(call).remove()
    return done()


def _mask(call: Call) -> WornMask:
    return numbered(call, "mask", lab_of(call).masks.find, lab_of(call).masks.worn)


VIOLATIONS = "/lab/violations"


@route("GET", VIOLATIONS)
def get_violations(call: Call) -> HttpReply:
    """Return {"running": ..., "counts": how often each rule was broken, "violations": the first ones of each rule}."""
    linter = lab_of(call).linter
    found = [each.to_json() for each in linter.violations()]
    return json_reply({"running": linter.running, "counts": dict(linter.counts), "violations": found})


@route("DELETE", VIOLATIONS)
def clear_violations(call: Call) -> HttpReply:
    """Delete all violations. Checking goes on."""
    lab_of(call).linter.clear()
    return done()


@route("POST", f"{VIOLATIONS}/start")
def start_linter(call: Call) -> HttpReply:
    """Check every connection that is opened from now on."""
    lab_of(call).linter.start()
    return get_violations(call)


@route("POST", f"{VIOLATIONS}/stop")
def stop_linter(call: Call) -> HttpReply:
    """Stop checking. Violations stay."""
    lab_of(call).linter.stop()
    return get_violations(call)
