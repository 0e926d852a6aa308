"""Log lines of events: one line each, whatever names clients choose, without secrets, and rendered only when needed."""

from __future__ import annotations

import logging

import pytest

from pulsarium.broker.logs import LogEvent, PartLog


class Unprintable:
    def __str__(self) -> str:
        raise AssertionError("rendered for nobody")


def test_facts_follow_the_message() -> None:
    event = LogEvent("connection opened", {"peer": "127.0.0.1:50000", "protocol": 21, "tls": False, "proxy": None})
    assert str(event) == "connection opened peer=127.0.0.1:50000 protocol=21 tls=false"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain-Name_1.2:3/x", "plain-Name_1.2:3/x"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "x"', '"say \\"x\\""'),
        ("x\n2026-01-01 INFO session: forged", '"x\\n2026-01-01 INFO session: forged"'),
        ("\x1b[31mred", '"\\u001b[31mred"'),
        ("a\u2028b", '"a\\u2028b"'),
        (b"auth", '"<4 bytes>"'),
        (1.5, "1.5"),
        ("x" * 5_000, '"' + "x" * 300 + '...(5000 characters)"'),
    ],
)
def test_a_value_cannot_forge_a_line_or_a_fact(value: object, shown: str) -> None:
    assert str(LogEvent("m", {"name": value})) == f"m name={shown}"


@pytest.mark.parametrize("name", ["token", "auth_data", "basicPassword", "tokenSecretKey", "Authorization"])
def test_secrets_are_never_shown(name: str) -> None:
    event = LogEvent("m", {name: "hunter2"})
    assert "hunter2" not in str(event)
    assert event.plain_facts() == {name: "***"}


def test_a_log_writes_under_its_short_name(caplog: pytest.LogCaptureFixture) -> None:
    log = PartLog("session")
    with caplog.at_level(logging.DEBUG, "pulsarium"):
        log.debug("d")
        log.info("i", peer="p")
        log.warning("w")
        log.error("e", exception=ValueError("wrong"))
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("pulsarium.session", "DEBUG", "d"),
        ("pulsarium.session", "INFO", "i peer=p"),
        ("pulsarium.session", "WARNING", "w"),
        ("pulsarium.session", "ERROR", "e"),
    ]
    assert caplog.records[3].exc_info is not None


def test_values_of_a_disabled_level_are_not_rendered(caplog: pytest.LogCaptureFixture) -> None:
    log = PartLog("session")
    with caplog.at_level(logging.INFO, "pulsarium"):
        log.debug("d", value=Unprintable())
    assert caplog.records == []


@pytest.mark.parametrize(("level", "enabled"), [(logging.INFO, False), (logging.DEBUG, True)])
def test_a_busy_path_can_ask_first(level: int, enabled: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level, "pulsarium"):
        assert PartLog("session").debug_enabled is enabled
