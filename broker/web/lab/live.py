"""/lab/live: the state of the lab, sent again whenever it changes."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.lab.faults.text import rule_to_json
from pulsarium.broker.lab.masks import mask_to_json
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.live import shown
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.broker.web.lab.capture import capture_to_json
from pulsarium.broker.web.lab.find import lab_of


@route("GET", "/lab/live")
async def get_live(call: Call) -> HttpReply:
    """Return clock, faults, masks, captures, the counts of violations, and the latest acts on the lab.

    With Accept: text/event-stream, send the answer again when it changes.
    """

    async def view() -> dict[str, Any]:
        lab = lab_of(call)
        return {
            "autoAdvance": lab.clock.auto_advance,
            "included": lab.clock.included,
            "namespaces": lab.clock.namespaces,
            "faults": [rule_to_json(rule) for rule in lab.faults.rules],
            "masks": [mask_to_json(worn) for worn in lab.masks.worn],
            "captures": [capture_to_json(each) for each in lab.captures.all],
            "linter": {"running": lab.linter.running, "counts": dict(lab.linter.counts)},
            "timeline": [act.to_json() for act in lab.acts],
        }

    return await shown(call, view)
