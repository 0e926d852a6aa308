"""docs/errors.md has the texts of the code, and each error of the protocol with its next step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.testing import running
from pulsarium.cli.known_errors import NEXT, START, TEXTS, Text, shows, text_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from scripts.pages.errors import errors_page


def test_each_error_of_the_protocol_has_its_next_step() -> None:
    page = errors_page()
    assert set(NEXT) == {name for name, _ in pb.ServerError.items()}
    assert [name for name, step in NEXT.items() if f"### {name}\n" not in page or step not in page] == []


def test_each_case_of_an_error_stands_below_its_name() -> None:
    busy = errors_page().partition("### ProducerBusy\n")[2].partition("\n### ")[0]
    assert "- The topic has an exclusive producer, or as many producers as allowed." in busy


def test_each_text_stands_once() -> None:
    texts = [text_of(row) for row in TEXTS]
    assert sorted(texts) == sorted(set(texts))


def test_each_text_and_each_error_has_an_anchor_of_its_own() -> None:
    headings = re.findall("^(#+) (.+)$", errors_page(), re.M)
    assert [name for sign, name in headings if sign == "###"] == [*(row.name for row in TEXTS), *pb.ServerError.keys()]
    anchors = sorted(name.lower() for _, name in headings)
    assert anchors == sorted(set(anchors))


def test_a_text_that_the_code_has_no_more_is_refused() -> None:
    with pytest.raises(LookupError, match="has no text with 'gone with the wind'"):
        text_of(Text("", "broker/storage/place.py", "gone with the wind", "", ""))


@pytest.mark.parametrize("head", [b"no database at all", b"SQLite format 3\0" + b"\1" * 90])
def test_the_text_for_a_damaged_store_is_on_the_page(head: bytes, tmp_path: Path) -> None:
    with running(data=tmp_path):
        pass
    with (tmp_path / "pulsarium.db").open("r+b") as database:
        database.write(head)
    with pytest.raises(StorageError) as refused, running(data=tmp_path):
        pass
    assert [row.remedy for row in START if shows(row, str(refused.value))] != []
