"""Faults of Pulsar 4.2.4: its profile answers with the same exceptions, the default profile with proper errors."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config.profile import PIP, PULSAR_4_2, Profile
from tests.broker.web.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, rest_of
from tests.broker.wire import plain, serving

NOT_HERE = "Not allowed on a non-persistent topic"
CAST = "class org.apache.pulsar.broker.service.nonpersistent.NonPersistentTopic cannot be cast to class "
BODY = {"ledgerId": 0, "entryId": 0}
SUB = "subscription/s"


@pytest.mark.parametrize(
    ("call", "body", "refusal", "fault"),
    [
        ("GET compaction", None, NOT_HERE, CAST),
        ("PUT compaction", None, NOT_HERE, CAST),
        ("GET offload", None, NOT_HERE, CAST),
        ("PUT offload", BODY, NOT_HERE, CAST),
        ("PUT backlogSize", BODY, NOT_HERE, CAST),
        ("GET ledger/0/entry/0", None, NOT_HERE, CAST),
        (f"POST {SUB}/skip/1", None, NOT_HERE, ""),
        (f"POST {SUB}/skip_all", None, NOT_HERE, ""),
        (f"POST {SUB}/resetcursor", BODY, NOT_HERE, ""),
        (f"POST {SUB}/expireMessages", BODY, NOT_HERE, ""),
        (
            f"POST {SUB}/analyzeBacklog",
            None,
            "Analyze backlog on a non-persistent topic is not allowed",
            "Unsupported operation analyzeBacklog",
        ),
    ],
)
async def test_a_non_persistent_topic_refuses_what_is_a_fault_of_the_released_broker(
    call: str, body: Any, refusal: str, fault: str
) -> None:
    method, path = call.split()
    sent = () if body is None else (body,)
    for profile in (PIP, PULSAR_4_2):
        async with serving(profile=profile) as bed:
            wire = await bed.connect()
            await wire.subscribe("non-persistent://public/default/np", "s")
            status, reason = await rest_of(bed).refused(method, f"{NON_PERSISTENT}/np/{path}", *sent)
            if profile is PIP:
                assert (status, reason) == (405, refusal)
            else:
                assert (status, fault in reason) == (500, True), reason


@pytest.mark.parametrize(("profile", "status"), [(PIP, 405), (PULSAR_4_2, 500)])
async def test_a_non_persistent_topic_has_no_internal_info(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        await (await bed.connect()).producer("non-persistent://public/default/np")
        rest = rest_of(bed)
        await rest.done("PUT", f"{NON_PERSISTENT}/parts/partitions", 2)
        for topic in ("np", "parts"):
            assert (await rest.call("GET", f"{NON_PERSISTENT}/{topic}/internal-info")).status == status
        absent = await rest.call("GET", f"{TOPICS}/absent/internal-info")
        assert absent.status == (404 if profile is PIP else 500)


@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2])
async def test_no_message_stands_before_the_first(profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer()
        await wire.publish(*[plain(b"x")] * 4)
        await wire.subscribe(name="s")
        paths = [f"{SUB}/position/0", f"{SUB}/position/-1", "examinemessage?initialPosition=latest&messagePosition=5"]
        for path in paths:
            status, text = await rest.refused("GET", f"{TOPICS}/t/{path}")
            assert (status, text) == (404, "Message not found") if profile is PIP else status == 500


NO_DATA = 'Cannot read field "partitions" because "metadata" is null'
ONLY_PERSISTENT = "Need to provide a persistent topic name"


@pytest.mark.parametrize(
    ("profile", "status", "start", "end"),
    [(PIP, 400, "", ""), (PULSAR_4_2, 500, "\n --- An unexpected error occurred in the server ---\n\nMessage: ", "\n")],
)
async def test_a_missing_body_is_a_fault_of_the_released_broker(
    profile: Profile, status: int, start: str, end: str
) -> None:
    async with serving(profile=profile) as bed:
        assert await rest_of(bed).refused("PUT", f"{TOPICS}/p/partitions") == (status, f"{start}{NO_DATA}{end}")


@pytest.mark.parametrize(("profile", "status"), [(PIP, 406), (PULSAR_4_2, 500)])
async def test_partitions_that_are_not_persistent_are_not_terminated(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
        url = f"{NON_PERSISTENT}/p/terminate/partitions"
        assert await rest.refused("POST", url) == (status, ONLY_PERSISTENT)


@pytest.mark.parametrize(("profile", "status"), [(PIP, 400), (PULSAR_4_2, 500)])
async def test_a_wrong_type_is_answered_with_a_page_of_the_container(profile: Profile, status: int) -> None:
    async with serving(profile=profile) as bed:
        answer = await rest_of(bed).call("POST", f"{NAMESPACES}/public/default/subscriptionTypesEnabled", ["Wrong"])
        message = "Request failed." if status == 500 else "Bad Request"
        assert (answer.status, answer.json["message"], answer.json["status"]) == (status, message, str(status))
