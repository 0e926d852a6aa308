"""Shadow topics (PIP-180): creation, stats, restarts, and the refusal of messages from clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PROFILES
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, plain, serving

SHADOW = "persistent://public/default/shadow"
SOURCE = {"PULSAR.SHADOW_SOURCE": TOPIC}
REFUSED = (pb.NotAllowedError, "Cannot send messages to a shadow topic")


async def shadowed(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/shadow", SOURCE)


async def refusal(wire: Wire, topic: str, **fields: Any) -> tuple[int, str]:
    """Send a message, and return the code and the text of its SEND_ERROR."""
    await wire.producer(topic)
    await wire.write(frame_of(Type.SEND, plain(b"x"), producer_id=0, sequence_id=5, num_messages=1, **fields))
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.producer_id, error.sequence_id) == (0, 5)
    return error.error, error.message


@pytest.mark.req("B-53")
@pytest.mark.parametrize("fields", [{}, {"message_id": {"ledgerId": 1, "entryId": 0}}])
async def test_nobody_sends_to_a_shadow(bed: Bed, wire: Wire, fields: dict[str, Any]) -> None:
    await shadowed(rest_of(bed))
    assert await refusal(wire, SHADOW, **fields) == REFUSED


@pytest.mark.req("B-53")
async def test_other_topics_take_no_message_ids(bed: Bed, wire: Wire) -> None:
    text = "Only shadow topic supports sending messages with messageId"
    message_id = {"ledgerId": 1, "entryId": 0}
    assert await refusal(wire, TOPIC, message_id=message_id) == (pb.NotAllowedError, text)


@pytest.mark.req("B-53")
async def test_a_shadow_is_shown_as_such(bed: Bed) -> None:
    rest = rest_of(bed)
    await shadowed(rest)
    assert SOURCE.items() <= (await rest.get(f"{TOPICS}/shadow/properties")).items()
    await rest.done("PUT", f"{TOPICS}/t/shadowTopics", [SHADOW])
    assert await rest.get(f"{TOPICS}/t/shadowTopics") == [SHADOW]


@pytest.mark.serving(Config(enableShadowTopics=False))
async def test_shadows_may_be_disabled(bed: Bed) -> None:
    rest = rest_of(bed)
    await rest.done("PUT", f"{TOPICS}/t")
    for path, body in ((f"{TOPICS}/t/shadowTopics", [SHADOW]), (f"{TOPICS}/shadow", SOURCE)):
        refused = await rest.call("PUT", path, body)
        assert (refused.status, refused.reason) == (405, "Shadow topics are disabled")


@pytest.mark.req("B-53")
@pytest.mark.parametrize("source", ["persistent://public/default/missing", "non-persistent://public/default/t", "a/b"])
async def test_a_shadow_has_a_source(bed: Bed, source: str) -> None:
    rest = rest_of(bed)
    status, reason = await rest.refused("PUT", f"{TOPICS}/shadow", {"PULSAR.SHADOW_SOURCE": source})
    assert (status, source in reason) == (412, True)
    assert await rest.get(TOPICS) == []


async def test_released_brokers_fail_without_a_source() -> None:
    async with serving(profile=PROFILES["pulsar-4.2"]) as bed:
        missing = {"PULSAR.SHADOW_SOURCE": "persistent://public/default/missing"}
        status, reason = await rest_of(bed).refused("PUT", f"{TOPICS}/shadow", missing)
    assert (status, "Managed ledger not found" in reason) == (500, True)


async def test_a_shadow_is_one_after_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        await shadowed(rest_of(bed))
    async with serving(data=tmp_path) as bed:
        assert await refusal(await bed.connect(), SHADOW) == REFUSED
