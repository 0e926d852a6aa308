"""/status.html, for probes."""

from __future__ import annotations

from pulsarium.broker.auth.needs import ANYBODY
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, text_reply


@route("GET", "/status.html", needs=ANYBODY)
def status(call: Call) -> Reply:
    """Return OK, for load balancers (statusFilePath in Pulsar)."""
    return text_reply("OK", content_type="text/html")
