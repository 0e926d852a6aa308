"""Log lines as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest

from pulsarium.broker.logs import PartLog
from pulsarium.cli.logs import configure


def test_a_text_line_has_time_level_name_message_and_facts() -> None:
    out = io.StringIO()
    configure("info", "text", out)
    PartLog("session").info("connection opened", peer="127.0.0.1:1", client="Pulsar CPP")
    line = (
        r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO session: connection opened peer=127\.0\.0\.1:1 client="Pulsar CPP"'
    )
    assert re.fullmatch(line + "\n", out.getvalue())


def test_a_json_line_is_one_object() -> None:
    out = io.StringIO()
    configure("info", "json", out)
    PartLog("session").info("connection opened", peer="127.0.0.1:1", protocol=21, proxy=None, token="x")
    line = json.loads(out.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "session",
        "message": "connection opened",
        "peer": "127.0.0.1:1",
        "protocol": 21,
        "proxy": None,
        "token": "***",
    }


@pytest.mark.parametrize("style", ["text", "json"])
def test_lines_of_plain_logging_stay_one_line(style: str) -> None:
    out = io.StringIO()
    configure("info", style, out)
    logging.getLogger("pulsarium.broker.session.reader").warning("closed %s", "a\nb\x1b[0m")
    assert out.getvalue().count("\n") == 1
    assert "closed a\\nb" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert "session.reader" in out.getvalue()
    assert "pulsarium.broker" not in out.getvalue()


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_traceback_follows_its_line(style: str) -> None:
    out = io.StringIO()
    configure("info", style, out)
    try:
        raise ValueError("wrong")
    except ValueError as error:
        PartLog("serve").error("failed", exception=error)
    assert "ValueError: wrong" in out.getvalue()
    if style == "json":
        assert json.loads(out.getvalue())["exception"].startswith("Traceback")


def test_lines_below_the_level_are_not_logged() -> None:
    out = io.StringIO()
    configure("warning", "text", out)
    PartLog("serve").info("silent")
    PartLog("serve").warning("heard")
    assert [line.split(" ", 2)[2] for line in out.getvalue().splitlines()] == ["WARNING serve: heard"]


def test_other_libraries_are_heard_from_warning_on() -> None:
    out = io.StringIO()
    configure("debug", "text", out)
    logging.getLogger("other.library").info("silent")
    logging.getLogger("other.library").warning("heard")
    assert [line.split(" ", 2)[2] for line in out.getvalue().splitlines()] == ["WARNING other.library: heard"]


def test_the_last_configuration_counts() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", "text", first)
    configure("info", "text", second)
    PartLog("serve").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
