"""`pulsarium explain` says what an error means and what to do next, without a broker."""

from __future__ import annotations

import sys

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from pulsarium.cli.known_errors import CONNECT, NEXT, TEXTS, Text, shows, text_of
from pulsarium.cli.main import cli
from pulsarium.client.errors import BY_CODE


def explained(*words: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, ["explain", *words], input=given)


def headings(*words: str, given: str | bytes = "") -> list[str]:
    """Return the names of the entries that these words lead to."""
    result = explained(*words, given=given)
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stdout.splitlines() if line and not line.startswith(" ")]


def test_an_error_of_the_protocol_is_explained_with_its_cases_and_the_next_step() -> None:
    said = " ".join(explained("ProducerBusy").stdout.split())
    assert said.startswith("ProducerBusy The producer's name is taken, or the topic has too many producers. ")
    assert "- The topic has an exclusive producer, or as many producers as allowed." in said
    assert said.endswith("Next: Give each producer a name of its own, or raise maxProducersPerTopic.")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("producerbusy", "ProducerBusy"),
        ("ProducerBusyException", "ProducerBusy"),
        ("ResultProducerBusy", "ProducerBusy"),
        ("ResultServiceUnitNotReady", "ServiceNotReady"),
        ("ResultBrokerMetadataError", "MetadataError"),
        ("org.apache.pulsar.client.api.PulsarClientException$TopicDoesNotExistException: no", "TopicNotFound"),
        ("PulsarClientException$BrokerPersistenceException", "PersistenceError"),
        ("_pulsar.AuthorizationError: no permission", "AuthorizationError"),
        ("server error: TopicTerminatedError: Topic was already terminated", "TopicTerminatedError"),
    ],
)
def test_an_error_is_found_by_the_spellings_of_clients(spelling: str, name: str) -> None:
    assert headings(spelling) == [name]


@pytest.mark.parametrize("name", NEXT)
def test_each_error_of_the_protocol_is_found_by_its_name(name: str) -> None:
    assert headings(name) == [name]


@pytest.mark.parametrize("own", BY_CODE.values())
def test_each_error_of_the_client_is_found_by_its_class(own: type[Exception]) -> None:
    (name,) = headings(f"{own.__name__}: what the broker said")
    assert BY_CODE[list(NEXT).index(name)] is own


@pytest.mark.parametrize("row", TEXTS, ids=lambda row: row.name)
def test_each_line_of_a_log_leads_to_its_own_entry(row: Text) -> None:
    line = text_of(row).replace("...", "x")
    assert [other for other in TEXTS if shows(other, line)] == [row]
    assert row.name in headings(f"pulsarium: {line}")


def test_the_names_of_options_behind_an_error_may_differ() -> None:
    line = "a:6651: the certificate is not trusted: self-signed; give its authority's file as --tlsTrustCertsFilePath"
    assert headings(line) == ["A certificate is not trusted"]


def test_an_error_that_only_our_client_knows_is_explained() -> None:
    said = explained("WrongProtocol").stdout
    assert said.startswith("WrongProtocol\n  The server speaks another protocol than the URL says")


def test_words_find_each_entry_that_has_all_of_them() -> None:
    assert headings("HASH", "ranges") == ["ConsumerAssignError"]
    assert headings("entry", "log", "missing") == ["A missing file of the entry log"]


def test_a_log_on_standard_input_is_explained_once_for_each_error() -> None:
    log = (
        "all is well\n"
        + 2 * "WARN ConsumerBusyException\n"
        + "pulsarium: port 1 is in use; choose another with --port N, or "
    )
    assert headings("-", given=log + "--port 0 for a free one\n") == ["A port is in use", "ConsumerBusy"]


def test_a_log_with_bytes_that_are_no_text_is_explained() -> None:
    assert headings("-", given=b"\xff\xfe ConsumerBusyException\n") == ["ConsumerBusy"]


def test_a_long_line_takes_no_longer_than_many_short_ones() -> None:
    assert headings("-", given="x" * 1_000_000 + " ConsumerBusyException\n") == ["ConsumerBusy"]


def test_without_a_text_everything_is_listed() -> None:
    listed = explained().stdout
    assert [name for name in (*NEXT, *(row.name for row in TEXTS)) if f"  {name}\n" not in listed] == []


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["ProducerBussy"], "", "pulsarium: nothing is known about 'ProducerBussy'; did you mean ProducerBusy?\n"),
        (["zzzz"], "", "pulsarium: nothing is known about 'zzzz'; `pulsarium explain` lists what can be explained\n"),
        (
            ["-"],
            "well\n",
            "pulsarium: no known error is in the text; `pulsarium explain` lists those that can be explained\n",
        ),
    ],
)
def test_what_nobody_knows_ends_with_the_next_step(words: list[str], given: str, said: str) -> None:
    result = explained(*words, given=given)
    assert (result.exit_code, result.stderr) == (1, said)


def test_a_page_that_an_entry_names_is_named_without_markdown() -> None:
    assert "Secure a broker (docs/secure.md)" in " ".join(explained("AuthenticationError").stdout.split())


def test_without_the_client_an_error_of_the_protocol_has_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pulsarium.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anyio", None)
    assert "  Next: Give each producer a name of its own" in explained("ProducerBusy").stdout
    assert headings(text_of(CONNECT[0])) == [CONNECT[0].name]


def test_names_of_errors_are_completed() -> None:
    shell = ShellComplete(cli, {}, "pulsarium", "_PULSARIUM_COMPLETE")
    assert [each.value for each in shell.get_completions(["explain"], "producerb")] == [
        "ProducerBlockedQuotaExceededError",
        "ProducerBlockedQuotaExceededException",
        "ProducerBusy",
    ]
