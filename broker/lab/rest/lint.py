"""/lab/violations: what clients did wrong."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.lab.rest.find import lab_of

ROOT = "/lab/violations"


@route("GET", ROOT)
def get_violations(call: Call) -> Reply:
    """{"running": ..., "counts": how often each rule was broken, "violations": the first of each rule, in order}."""
    linter = lab_of(call).linter
    found = [each.to_json() for each in linter.violations()]
    return json_reply({"running": linter.running, "counts": dict(linter.counts), "violations": found})


@route("DELETE", ROOT)
def clear_violations(call: Call) -> Reply:
    """Forget them; clients are judged on."""
    lab_of(call).linter.clear()
    return done()


@route("POST", f"{ROOT}/start")
def start_linter(call: Call) -> Reply:
    """Judge every connection that is opened from now on."""
    lab_of(call).linter.start()
    return get_violations(call)


@route("POST", f"{ROOT}/stop")
def stop_linter(call: Call) -> Reply:
    """Judge no more; what was found stays."""
    lab_of(call).linter.stop()
    return get_violations(call)
