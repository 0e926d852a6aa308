"""`pulsarium mask`, against a broker of this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine


@pytest.fixture
async def mask() -> AsyncIterator[LabLine]:
    async with live() as here:
        yield LabLine(here, "mask")


async def test_add_list_remove(mask: LabLine) -> None:
    assert await mask.said("list") == "No masks. Add one: pulsarium mask add --max-protocol-version 19\n"
    assert await mask.said("add", "--profile", "pulsar-2.11", "--max-protocol-version", "5") == "1\n"
    only = ["--allow", "LOOKUP", "--unknown-error", "NotAllowedError", "--client-version", "none*"]
    assert await mask.said("add", "--flag", "supports_topic_watchers=false", *only) == "2\n"
    assert (await mask.live.bed.dial().connect()).protocol_version == 5
    assert await mask.said("list") == (
        "1  1 connection  profile pulsar-2.11, maxProtocolVersion 5\n"
        '2  0 connections  flags {"supports_topic_watchers": false}, allowed ["LOOKUP"], unknownError NotAllowedError, '
        "clientVersion none*\n"
    )
    await mask.said("remove", "1")
    assert [each["id"] for each in json.loads(await mask.said("list", "--json"))] == [2]
    await mask.said("remove", "--all")
    assert await mask.said("list") == "No masks. Add one: pulsarium mask add --max-protocol-version 19\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("add --flag supports_topic_watchers", "write NAME=true or NAME=false"),
        ("add --max-protocol-version 23", "0<=x<=22"),
        ("add --profile pulsar-1.0", "no profile 'pulsar-1.0'"),
        ("remove 7", "There is no mask 7"),
        ("remove", "pass the IDs of the masks to remove, or --all"),
    ],
)
async def test_mask_refuses_what_cannot_be(mask: LabLine, line: str, text: str) -> None:
    result = await mask.run(*line.split())
    assert result.exit_code != 0
    assert text in result.stderr
