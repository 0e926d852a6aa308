"""The table of `scripts/test --coverage`."""

from __future__ import annotations

from typing import Any

from tests.house.covered import ALL, Share, by_folder, table


def measured(lines: int, lines_run: int, branches: int, branches_run: int) -> dict[str, Any]:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": lines_run,
            "num_branches": branches,
            "covered_branches": branches_run,
        }
    }


REPORT = {
    "files": {
        "client/message.py": measured(10, 10, 0, 0),
        "broker/model/topic/base.py": measured(6, 3, 4, 2),
        "broker/model/topic/topics.py": measured(2, 1, 0, 0),
        "broker/model/__init__.py": measured(0, 0, 0, 0),
    }
}


def test_the_files_of_a_folder_are_added_up() -> None:
    shares = by_folder(REPORT)
    assert list(shares) == ["broker/model", "broker/model/topic", "client", ALL]
    assert shares["broker/model/topic"] == Share(8, 4, 4, 2)
    assert shares[ALL] == Share(18, 14, 4, 2)


def test_branches_count_as_lines_do_and_nothing_is_all_of_it() -> None:
    assert {folder: each.percent for folder, each in by_folder(REPORT).items()} == {
        "broker/model": 100,
        "broker/model/topic": 50,
        "client": 100,
        ALL: 100 * 16 / 22,
    }


def test_a_line_says_what_did_not_run() -> None:
    assert table(by_folder(REPORT)).splitlines()[2].split() == ["broker/model/topic", "50%", "8", "4", "4", "2"]
