"""`pulsarium admin scalable-topics`: what each command asks, and what it prints of a broker with scalable topics."""

from __future__ import annotations

import json

from tests.cli.admin.live import live

TOPIC = "topic://public/default/t"


async def test_a_topic_is_created_split_merged_and_deleted() -> None:
    async with live() as admin:
        group = "scalable-topics"
        assert await admin.said(group, "create", TOPIC, "-s", "2", "-p", "k=v") == (
            f"Created scalable topic {TOPIC} with 2 segment(s)\n"
        )
        assert await admin.said(group, "list", "public/default") == f"{TOPIC}\n"
        assert await admin.said(group, "list", "public/default", "-pk", "k", "-pv", "w") == ""
        assert await admin.said(group, "split-segment", TOPIC, "-s", "0") == f"Split segment 0 of topic {TOPIC}\n"
        merged = await admin.said(group, "merge-segments", TOPIC, "--segment-id-1", "2", "--segment-id-2", "3")
        assert merged == f"Merged segments 2 and 3 of topic {TOPIC}\n"
        shown = json.loads(await admin.said(group, "get-metadata", TOPIC))
        assert (shown["epoch"], shown["properties"]) == (2, {"k": "v"})
        assert await admin.said(group, "delete", TOPIC) == f"Deleted scalable topic {TOPIC}\n"
