"""/lab/why: the reason why a message was not delivered, or what became of it."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.lab.rest.find import lab_of
from pulsarium.broker.lab.why import NotThere, WhyError


@route("GET", "/lab/why")
def get_why(call: Call) -> Reply:
    """?topic=&subscription=&messageId=LEDGER:ENTRY[:BATCH]; without messageId: of the next one not delivered."""
    query = call.query
    unknown = sorted(query.keys() - {"topic", "subscription", "messageId", "token"})
    if unknown or not query.get("topic") or not query.get("subscription"):
        raise AdminError(400, "say ?topic=...&subscription=...&messageId=LEDGER:ENTRY[:BATCH], or no messageId")
    try:
        why = lab_of(call).why(query["topic"], query["subscription"], query.get("messageId"))
    except NotThere as error:
        raise AdminError(404, str(error)) from None
    except WhyError as error:
        raise AdminError(400, str(error)) from None
    return json_reply({"reason": why.reason, "text": why.text, "details": why.details})
