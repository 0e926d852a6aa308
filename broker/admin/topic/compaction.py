"""/admin/v2/persistent: compaction of topics."""

from __future__ import annotations

from pulsarium.broker.admin.topic.backlog import persistent_only
from pulsarium.broker.admin.topic.topics import each, find
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.errors import NotAllowedError


@route("PUT", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def compact_topic(call: Call) -> Reply:
    """Keep only the latest message of each key, for readers that ask for it; of each partition."""
    running: list[NotAllowedError] = []
    for topic in list(each(call)):
        try:
            persistent_only(topic).compaction.trigger()
        except NotAllowedError as error:  # the other partitions are compacted all the same
            running.append(error)
    if running:
        raise running[0]
    return done()


@route("GET", *of_topic("/compaction"), needs=topic_operation("COMPACT"))
def get_compaction(call: Call) -> Reply:
    """How the last compaction ended, or that it runs."""
    compaction = persistent_only(find(call)).compaction
    return json_reply({"status": compaction.status, "lastError": compaction.error})
