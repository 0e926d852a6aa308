"""Names and messages of clients cannot steer the terminal that shows them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarium.cli
from pulsarium.cli.terminal import Terminal, guard, progress, replace_screen, styled
from yardsticks.servers import ending

CLEAR = "\x1b[2J"
ESCAPED = "\\x1b[2J"


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Put a terminal behind stdout and stderr. No fixture: pytest replaces stdout once more after its fixtures."""
    fake = FakeTerminal()
    monkeypatch.setattr(sys, "stdout", fake)
    monkeypatch.setattr(sys, "stderr", fake)
    guard()
    return fake


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CLEAR, ESCAPED),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over\\rwritten"),
        ("\x7f\x08", "\\x7f\\x08"),
        ("\u202etxt.exe\u2066", "\\u202etxt.exe\\u2066"),
        ("a\u200bb\u2028c", "a\\u200bb\\u2028c"),
        ("two\nlines\tÜ 日本 €", "two\nlines\tÜ 日本 €"),
    ],
)
def test_unprintable_characters_are_escaped(monkeypatch: pytest.MonkeyPatch, text: str, shown: str) -> None:
    terminal = at_terminal(monkeypatch)
    print(text, end="")
    assert terminal.getvalue() == shown


def test_only_the_colors_of_styled_text_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = at_terminal(monkeypatch)
    print(styled(f"name{CLEAR}", fg="red"), f"\x1b[31mname{CLEAR}", end="")
    assert terminal.getvalue() == f"\x1b[31mname{ESCAPED}\x1b[0m \\x1b[31mname{ESCAPED}"


def test_no_text_has_colors_where_the_environment_forbids_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = at_terminal(monkeypatch)
    print(styled(f"name{CLEAR}", fg="red"), end="")
    assert terminal.getvalue() == f"name{ESCAPED}"


def test_a_screen_is_drawn_over_the_former_one_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    replace_screen("one\ntwo")
    assert pipe.getvalue() == "one\ntwo\n"
    terminal = at_terminal(monkeypatch)
    replace_screen(f"one{CLEAR}\ntwo")
    assert terminal.getvalue() == f"\x1b[Hone{ESCAPED}\x1b[K\ntwo\x1b[K\n\x1b[J"


def test_progress_is_drawn_and_its_label_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    with progress(2, f"topic{CLEAR}", sys.stderr) as bar:
        bar.update(2)
    drawn = terminal.getvalue()
    assert f"topic{ESCAPED}" in drawn
    assert "100%" in drawn


def test_a_pipe_receives_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    guard()
    print(CLEAR, end="")
    assert (sys.stdout is pipe, pipe.getvalue()) == (True, CLEAR)


def test_a_second_guard_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    at_terminal(monkeypatch)
    first = sys.stdout
    guard()
    assert sys.stdout is first
    assert isinstance(first, Terminal)


def test_commands_leave_colors_and_control_sequences_to_the_terminal_module() -> None:
    folder = Path(pulsarium.cli.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "terminal.py":
            source = path.read_text("utf-8")
            forbidden = [
                each for each in ("click.style", "click.secho", "progressbar", "\\x1b", "\\033") if each in source
            ]
            assert not forbidden, path


@pytest.mark.parametrize(
    "program",
    [
        "from pulsarium.cli.main import main; sys.argv[1:] = [NAME]; main()",
        "from pulsarium.cli.pulsar.main import admin; admin(Path('.'), ['topics', NAME])",
        "from pulsarium.cli.pulsar.main import client; client(Path('.'), [NAME])",
        "from pulsarium.cli.pulsar.main import main; main(Path('.'), [NAME])",
        "from pulsarium.cli.pulsar.daemon import main; main(Path('.'), ['stop', NAME])",
        "from pulsarium.cli.pulsar.bookkeeper import main; main(Path('.'), ['shell', NAME])",
        "from pulsarium.cli.pulsar.perf import main; main(Path('.'), [NAME])",
        "from pulsarium.cli.pulsar.shell import main; main(Path('.'), ['-f', NAME])",
        "from pulsarium.cli.pulsar.apply_config import main; main([NAME])",
    ],
)
def test_errors_of_every_program_are_escaped_on_a_terminal(program: str) -> None:
    leader, follower = os.openpty()
    code = f"import sys\nfrom pathlib import Path\nNAME = {f'no{CLEAR}such'!r}\n{program}"
    with ending(subprocess.Popen([sys.executable, "-P", "-c", code], stdout=follower, stderr=follower)) as run:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the program has ended
                break
            if not part:
                break
            shown += part
        assert run.wait(30) != 0
    os.close(leader)
    assert b"\x1b" not in shown
    assert f"no{ESCAPED}such".encode() in shown
