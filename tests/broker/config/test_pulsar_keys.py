"""The keys of Pulsar's releases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsarium.broker.config import PROFILES, ConfigError, Profile, load
from pulsarium.broker.config.missing import lost_without
from pulsarium.broker.config.pulsar_keys import FILE, PULSAR_KEYS, RELEASES, Releases, releases_of

OF_OLD = "managedLedgerNumWorkerThreads"  # up to 2.10
OF_5_0 = "managedLedgerReadAheadEnabled"


def test_each_key_stands_once_below_releases_in_their_order() -> None:
    words = [word for line in FILE.read_text().splitlines() if line[:1] not in ("#", "[") for word in line.split()]
    assert len(words) == len(set(words)) == len(PULSAR_KEYS)
    assert all(re.fullmatch(r"\w+", word) for word in words)
    for first, last in set(PULSAR_KEYS.values()):
        assert RELEASES.index(first) <= RELEASES.index(last)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_the_keys_of_each_profile_are_known(profile: Profile) -> None:
    assert set(profile.releases) <= set(RELEASES)


@pytest.mark.parametrize(
    ("key", "releases"),
    [
        ("brokerServicePort", "2.7 to 5.0"),
        ("disableBrokerInterceptors", "2.7 to 4.2"),  # only in files
        (OF_OLD, "2.7 to 2.10"),
        ("sslFactoryPlugin", "4.0 to 5.0-m1"),
        (OF_5_0, "5.0"),
        ("bookkeeper_any", "2.7 to 5.0"),
        ("brokerServicePrt", "None"),
    ],
)
def test_the_releases_of_a_key(key: str, releases: str) -> None:
    assert str(releases_of(key)) == releases


def test_a_release_counts_by_its_place_and_not_by_its_digits() -> None:
    releases = Releases("2.8", "3.0")
    assert [each for each in RELEASES if releases.has(each)] == ["2.8", "2.9", "2.10", "2.11", "3.0"]


@pytest.mark.parametrize(
    ("profile", "elsewhere", "ignored"),
    [
        ("pip", (f"{OF_OLD} (2.7 to 2.10)",), (OF_5_0,)),
        ("pulsar-5.0", (f"{OF_OLD} (2.7 to 2.10)",), (OF_5_0,)),
        ("pulsar-4.2", (f"{OF_OLD} (2.7 to 2.10)", f"{OF_5_0} (5.0)"), ()),
        ("pulsar-2.8", (f"{OF_5_0} (5.0)",), (OF_OLD,)),
    ],
)
def test_keys_of_other_releases_are_told_with_these_releases_and_are_not_misspelled(
    profile: str, elsewhere: tuple[str, ...], ignored: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{OF_OLD}=8\n{OF_5_0}=true\n")
    found = load(file, profile=PROFILES[profile])
    assert (found.elsewhere, found.ignored, found.unknown) == (elsewhere, ignored, ())


@pytest.mark.parametrize(
    ("key", "profile", "why"),
    [
        (OF_OLD, "pip", "only Pulsar 2.7 to 2.10 has this key, and Pulsarium does not; leave it out"),
        (OF_5_0, "pulsar-4.2", "only Pulsar 5.0 has this key, and Pulsarium does not; leave it out"),
        ("enableBusyWait", "pip", "Pulsarium does not have this key of Pulsar; leave it out"),
        (
            "functionsWorkerEnabled",
            "pip",
            f"Pulsarium does not have this key of Pulsar: {lost_without('functionsWorkerEnabled')}; leave it out",
        ),
        ("mine", "pip", "no such key; Pulsar does not have it either"),
    ],
)
def test_set_refuses_a_key_and_says_which_releases_have_it(key: str, profile: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, [f"{key}=true"], PROFILES[profile])
    assert caught.value.reason == why
