"""Masks of a proxy: CONNECT and CONNECTED are rewritten."""

from __future__ import annotations

import pytest

from pulsarium.broker.lab.masks import Mask, MaskError
from pulsarium.broker.session.session import sessions_of
from tests.broker.lab.proxy.behind import behind
from tests.broker.wire import VERSION, Type


async def test_both_sides_speak_the_version_of_the_mask() -> None:
    async with behind() as it:
        worn = it.lab.masks.add(Mask(max_protocol_version=17), client_version="old*")
        other = await it.dial()
        assert (await other.connect(client_version="new")).protocol_version == VERSION
        masked = await it.dial()
        assert (await masked.connect(client_version="old")).protocol_version == 17
        assert it.broker is not None
        sessions = sessions_of(it.broker.broker)
        versions = {each.client_version: each.protocol_version for each in sessions}
        assert versions == {"new": VERSION, "old": 17}
        assert worn.hits == 1


async def test_a_mask_sets_the_flags_of_the_broker() -> None:
    async with behind() as it:
        it.lab.masks.add(Mask(flags={"supports_topic_watchers": False}))
        connected = await (await it.dial()).connect(flags=["supports_topic_watchers"])
        assert not connected.feature_flags.supports_topic_watchers


async def test_a_mask_that_is_added_disconnects_the_clients_that_match() -> None:
    async with behind() as it:
        wire = await it.connect(client_version="old")
        other = await it.connect(client_version="new")
        it.lab.masks.add(Mask(max_protocol_version=17), client_version="old", disconnect=True)
        await wire.closed()
        await other.alive()


@pytest.mark.parametrize(
    ("mask", "word"),
    [(Mask(profile="pulsar-4.2"), "profile"), (Mask(allowed=frozenset(["SEND"])), "allowed")],
)
async def test_a_mask_that_only_a_broker_can_wear_is_refused(mask: Mask, word: str) -> None:
    async with behind() as it:
        with pytest.raises(MaskError, match=f"{word}: only a broker of Pulsarium"):
            it.lab.masks.add(mask)
        await (await it.connect()).send(Type.PING)


async def test_a_mask_by_role_is_refused() -> None:
    async with behind() as it:
        with pytest.raises(MaskError, match="only the broker knows who a client is"):
            it.lab.masks.add(Mask(max_protocol_version=17), role="admin")
