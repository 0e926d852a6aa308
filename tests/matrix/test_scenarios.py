"""The list of scenarios: each client's program has all of them, but for excused ones."""

from __future__ import annotations

import re

import pytest

from pulsarium.matrix.clients import CLIENTS, FOLDER
from pulsarium.matrix.python import official, ours
from pulsarium.matrix.scenarios import SCENARIOS, matching

NAMES = [scenario.name for scenario in SCENARIOS]


def test_there_are_enough_and_no_two_of_a_name() -> None:
    assert len(NAMES) >= 25
    assert len(set(NAMES)) == len(NAMES)


def test_excuses_name_clients_and_reasons() -> None:
    for scenario in SCENARIOS:
        assert scenario.not_in.keys() <= CLIENTS.keys()
        assert all(scenario.not_in.values())
        assert scenario.contract


def expected(client: str) -> set[str]:
    return {scenario.name for scenario in SCENARIOS if client not in scenario.not_in}


def test_the_python_programs() -> None:
    pytest.importorskip("pulsar")
    from pulsarium.matrix.python.official.acknowledging import ACKNOWLEDGING
    from pulsarium.matrix.python.official.messages import MESSAGES
    from pulsarium.matrix.python.official.reading import READING
    from pulsarium.matrix.python.official.topics import TOPICS

    assert {*MESSAGES, *ACKNOWLEDGING, *TOPICS, *READING} == expected("python")
    assert official.__doc__


def test_the_program_of_websocket_client() -> None:
    from pulsarium.matrix.python.websocket.acknowledging import ACKNOWLEDGING
    from pulsarium.matrix.python.websocket.messages import MESSAGES
    from pulsarium.matrix.python.websocket.topics import TOPICS

    assert {*MESSAGES, *ACKNOWLEDGING, *TOPICS} == expected("websocket")


def test_our_program_has_all_scenarios() -> None:
    from pulsarium.matrix.python.ours.acknowledging import ACKNOWLEDGING
    from pulsarium.matrix.python.ours.messages import MESSAGES
    from pulsarium.matrix.python.ours.reading import READING
    from pulsarium.matrix.python.ours.topics import TOPICS

    assert {*MESSAGES, *ACKNOWLEDGING, *TOPICS, *READING} == expected("ours")
    assert ours.__doc__


@pytest.mark.parametrize("client", ["java", "go", "rust", "node"])
def test_programs_of_other_languages(client: str) -> None:
    """Sources name each scenario. Some name compressions only by the list of the client."""
    sources = (path for path in (FOLDER / client).rglob("*") if path.suffix in (".java", ".go", ".rs", ".js"))
    text = "".join(path.read_text() for path in sources)
    # In JavaScript a name of one word is the name of a method.
    found = re.finditer(r'"(?P<text>[a-z][a-z0-9-]+)"|^  async (?P<method>\w+)\(', text, re.MULTILINE)
    named = {each["text"] or each["method"] for each in found}
    wanted = {name for name in expected(client) if not name.startswith("compression-")}
    assert wanted - named == set()


def test_names_and_globs() -> None:
    assert [scenario.name for scenario in matching(["seek-*", "reader"])] == ["seek-id", "seek-time", "reader"]
    assert list(matching([])) == list(SCENARIOS)
    with pytest.raises(LookupError, match="no scenario matches nothing"):
        matching(["reader", "nothing"])
