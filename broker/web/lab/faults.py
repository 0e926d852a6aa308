"""/lab/faults: inject faults into connections."""

from __future__ import annotations

import trio

from pulsarium.broker.lab.faults import FaultError, FaultRemoved, InstalledFault
from pulsarium.broker.lab.faults.text import add_from_json, rule_to_json
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.lab.find import MOST_PATIENCE, PATIENCE, lab_of, number, numbered

ROOT = "/lab/faults"


@route("GET", ROOT)
def get_faults(call: Call) -> HttpReply:
    """List all rules in the order in which they are tried, with their hits."""
    return json_reply([rule_to_json(rule) for rule in lab_of(call).faults.rules])


@route("POST", ROOT)
def add_fault(call: Call) -> HttpReply:
    """Add a rule: {"command": "SEND", "action": {"kind": "drop"}, "stage": "after", "topic": "orders*", ...}."""
    try:
        rule = add_from_json(lab_of(call).faults, call.json())
    except FaultError as error:
        raise AdminError(400, str(error)) from None
    return json_reply(rule_to_json(rule))


@route("DELETE", ROOT)
def remove_faults(call: Call) -> HttpReply:
    """Remove every rule. The frames that they held up go on."""
    lab_of(call).faults.clear()
    return done()


@route("GET", f"{ROOT}/{{id}}")
def get_fault(call: Call) -> HttpReply:
    """Show a rule."""
    return json_reply(rule_to_json(_rule(call)))


@route("DELETE", f"{ROOT}/{{id}}")
def remove_fault(call: Call) -> HttpReply:
    """Remove a rule. The frames that it held up go on."""
    _rule(call).remove()
    return done()


@route("GET", f"{ROOT}/{{id}}/wait")
async def wait_for_fault(call: Call) -> HttpReply:
    """Wait until a rule has acted `n` times in all (1), and return the rule.

    Answer 408 after `timeout` seconds (30).
    """
    rule = _rule(call)
    n = int(number(call, "n", 1, 2**31))
    timeout = number(call, "timeout", PATIENCE, MOST_PATIENCE)
    try:
        with trio.fail_after(timeout):
            await rule.wait(n)
    except trio.TooSlowError:
        text = f"fault {rule.id} has acted {rule.hits} times after {timeout:g} s, not {n} times"
        raise AdminError(408, text) from None
    except FaultRemoved as error:
        raise AdminError(410, str(error)) from None
    except FaultError as error:
        raise AdminError(400, str(error)) from None
    return json_reply(rule_to_json(rule))


def _rule(call: Call) -> InstalledFault:
    return numbered(call, "fault", lab_of(call).faults.find, lab_of(call).faults.rules)
