"""Random requests: a secured broker survives them, and its answers are no faults of its own."""

from __future__ import annotations

import json
import logging

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile
from tests.broker.auth.secured import bearer, by_token
from tests.broker.web.admin.random_requests import PREPARED, Bad, bad_requests, is_meant
from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import plain, serving

AT_ONCE = 20  # requests to one broker


async def asked(rest: Rest, request: Bad) -> tuple[int, bytes]:
    headers = {name.replace("-", "_"): value.encode().decode("latin-1") for name, value in request.headers.items()}
    answer = await rest.call(request.method, request.url, body=request.body, **headers)
    return answer.status, answer.body


async def play(profile: Profile, requests: list[Bad]) -> None:
    admin = bearer("admin")
    allowed = {"forceDeleteTenantAllowed": True, "forceDeleteNamespaceAllowed": True}
    async with serving(by_token(transactionCoordinatorEnabled=profile is PIP, **allowed), profile=profile) as bed:
        rest = rest_of(bed)
        for method, url, value in PREPARED:
            answer = await rest.call(method, url, body=json.dumps(value).encode(), **admin)
            assert answer.status == 204, (url, answer)
        wire = await bed.connect(auth_method_name="token", auth_data=admin["authorization"].split()[1].encode())
        await wire.producer("persistent://ta/ns/t")
        await wire.publish(*[plain(b"x")] * 5)
        for request in requests:
            with trio.fail_after(600):
                status, body = await asked(rest, request)
            shown = profile.own_faults_are_shown and status == 500  # faults of 4.2.4; our own are in the log
            assert is_meant(request, status, body) or shown, f"{status} {body[:300]!r} to {request} of {request.route}"
        assert (await rest.call("GET", "/admin/v2/clusters", **admin)).status == 200


@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2], ids=lambda profile: profile.name)
def test_nothing_that_is_asked_is_the_brokers_fault(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(bad_requests(), min_size=AT_ONCE, max_size=AT_ONCE))
    def some(requests: list[Bad]) -> None:
        trio.run(play, profile, requests, clock=MockClock(autojump_threshold=0))
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []

    some()
