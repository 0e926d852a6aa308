"""What Pulsar 4.2.4 answers with an exception of its own: shown by its profile, said as what is wrong by ours."""

from __future__ import annotations

import pytest

from pulsarium.broker.config.profile import PIP, PULSAR_4_2, Profile
from tests.broker.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, rest_of
from tests.broker.wire import serving

CLASS = "class org.apache.pulsar.broker.service.nonpersistent.NonPersistentTopic cannot be cast to class "
NO_DATA = 'Cannot read field "partitions" because "metadata" is null'
ONLY_PERSISTENT = "Need to provide a persistent topic name"


@pytest.mark.parametrize(
    ("profile", "status", "start", "end"),
    [(PIP, 400, "", ""), (PULSAR_4_2, 500, "\n --- An unexpected error occurred in the server ---\n\nMessage: ", "\n")],
)
async def test_a_body_that_is_missing(profile: Profile, status: int, start: str, end: str) -> None:
    async with serving(profile=profile) as bed:
        assert await rest_of(bed).refused("PUT", f"{TOPICS}/p/partitions") == (status, f"{start}{NO_DATA}{end}")


@pytest.mark.parametrize(("profile", "status"), [(PIP, 405), (PULSAR_4_2, 500)])
async def test_a_topic_of_the_other_kind(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        wire = await bed.connect()
        await wire.producer("non-persistent://public/default/np")
        told, reason = await rest_of(bed).refused("GET", f"{NON_PERSISTENT}/np/compaction")
        assert (told, CLASS in reason) == (status, profile is PULSAR_4_2)


@pytest.mark.parametrize(("profile", "status"), [(PIP, 406), (PULSAR_4_2, 500)])
async def test_partitions_that_cannot_be_terminated(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
        url = f"{NON_PERSISTENT}/p/terminate/partitions"
        assert await rest.refused("POST", url) == (status, ONLY_PERSISTENT)


@pytest.mark.parametrize(("profile", "status"), [(PIP, 400), (PULSAR_4_2, 500)])
async def test_a_page_of_the_container(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        answer = await rest_of(bed).call("POST", f"{NAMESPACES}/public/default/subscriptionTypesEnabled", ["Wrong"])
        message = "Request failed." if status == 500 else "Bad Request"
        assert (answer.status, answer.json["message"], answer.json["status"]) == (status, message, str(status))
