"""The .conf files of the image: all keys, with the defaults that a broker has without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile, load
from pulsarium.broker.config.file import parse
from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS
from pulsarium.cli.admin.caller import Caller
from pulsarium.cli.pulsar.apply_config import apply
from pulsarium.cli.pulsar.conf import broker_conf, client_conf, main


@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2])
def test_the_defaults_of_standalone_conf_are_the_broker_s_but_for_the_address(profile: Profile, tmp_path: Path) -> None:
    main(str(tmp_path))
    loaded = load(tmp_path / "standalone.conf", profile=profile)
    assert loaded.config == replace(load(None, profile=profile).config, bindAddress="0.0.0.0")
    assert (loaded.ignored, loaded.unknown) == ((), ())
    assert (tmp_path / "broker.conf").read_text() == (tmp_path / "standalone.conf").read_text()


def test_each_key_of_pulsar_can_be_set_by_its_plain_name() -> None:
    lines, _ = apply(broker_conf().splitlines(), dict.fromkeys(PULSAR_KEYS, "set"))
    assert {setting.key for setting in parse("\n".join(lines)) if setting.value == "set"} == PULSAR_KEYS.keys()


def test_client_conf_leads_to_the_broker_beside_it(tmp_path: Path) -> None:
    (tmp_path / "client.conf").write_text(client_conf())
    settings = Caller(config=tmp_path / "client.conf").settings
    assert settings["brokerServiceUrl"] == "pulsar://localhost:6650/"
    assert Caller(config=tmp_path / "client.conf").proof == ("", "")
