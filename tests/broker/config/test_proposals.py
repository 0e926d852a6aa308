"""Proposals that are switched on, and the keys that belong to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.config import PIP, PROFILES, ConfigError, load, profile_of
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.proposals import BACKLOG_AGE, PROPOSALS, TOKEN_KEYS, proposals_of
from pulsarium.broker.testing import running
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import Rest

WITH_KEYS = profile_of("pip", pip=[TOKEN_KEYS])
OFF = "the key belongs to PIP-490, which is off; switch it on with --pip 490"


def test_proposals_are_numbers_or_texts() -> None:
    assert proposals_of(["490, 488", 490]) == {488, 490}


@pytest.mark.parametrize("given", ["999", "", "PIP-490", "0490"])
def test_a_proposal_that_is_not_declared_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=f"no PIP {given} can be switched on here; there are 488, 490, 491, 493"):
        profile_of("pip", pip=[given])


def test_no_proposal_is_on_by_itself_but_in_releases_that_have_it() -> None:
    on = {name: profile.proposals for name, profile in PROFILES.items() if profile.proposals}
    assert on == {"pulsar-5.0": {BACKLOG_AGE}}


def test_a_switch_adds_to_the_proposals_of_a_release() -> None:
    profile = profile_of("pulsar-5.0", pip=[TOKEN_KEYS])
    assert (profile.has(BACKLOG_AGE), profile.has(TOKEN_KEYS)) == (True, True)


def test_each_proposal_has_keys_or_draft_fields_and_each_key_a_declared_proposal() -> None:
    named = {key.meaning.proposal for key in documented_keys().values()} - {0}
    assert named | {each.number for each in PROPOSALS.values() if each.draft_fields} == PROPOSALS.keys()


def test_each_draft_field_is_a_field_of_a_command() -> None:
    fields = [field.split(".") for each in PROPOSALS.values() for field in each.draft_fields]
    messages = pb.DESCRIPTOR.message_types_by_name
    assert [name for message, name in fields if name not in messages[message].fields_by_name] == []


def test_a_key_of_a_proposal_that_is_off_cannot_be_set() -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, ["tokenRequireKid=true"])
    assert str(caught.value) == f"--set: tokenRequireKid: {OFF}"
    assert load(None, ["tokenRequireKid=true"], WITH_KEYS).config.tokenRequireKid


def test_a_key_of_a_file_has_no_effect_while_its_proposal_is_off(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("tokenRequireKid=true\ntokenValidationKeysRefreshSeconds=0\nentryFilterNames=x\n")
    found = load(file)
    assert not found.config.tokenRequireKid
    assert found.missing == (("tokenRequireKid", OFF), ("entryFilterNames", found.missing[-1][1]))
    assert load(file, (), WITH_KEYS).config.tokenRequireKid


def test_a_broker_of_a_test_has_the_proposals_that_it_asks_for() -> None:
    with running(pip=[TOKEN_KEYS], set={"tokenRequireKid": False}) as broker:
        assert broker.admin_url
    with pytest.raises(ConfigError, match="PIP-490, which is off"):
        running(set={"tokenRequireKid": False})


@pytest.mark.serving(profile=WITH_KEYS)
async def test_the_console_names_the_proposals_that_are_on(rest: Rest) -> None:
    shown = await rest.get("/pulsarium/topics")
    assert (shown["profile"], shown["proposals"]) == (PIP.name, ["PIP-490"])
