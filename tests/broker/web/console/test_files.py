"""The files of the console."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from pulsarium.broker.web.console.files import FOLDER, TYPES
from tests.broker.web.admin.rest import Rest

FILES = sorted(each for each in FOLDER.iterdir() if each.suffix in TYPES)


class Checker(HTMLParser):
    """A parser that collects the addresses that a page loads, and checks that elements are closed."""

    EMPTY = ("meta", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "action")]
        assert not [name for name, _ in attributes if name.startswith("on") or name == "style"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_loads_only_files_of_the_console(rest: Rest) -> None:
    answer = await rest.call("GET", "/", accept="text/html")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    checker = Checker()
    checker.feed(answer.body.decode())
    assert not checker.open
    for address in checker.addresses:
        assert (await rest.call("GET", f"/{address}")).status == 200


async def test_the_policy_allows_no_inline_script_and_no_other_host(rest: Rest) -> None:
    policy = (await rest.call("GET", "/")).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert not re.search(r"unsafe|\*|http", policy)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
async def test_each_file_is_served_by_its_type(file: object, rest: Rest) -> None:
    answer = await rest.call("GET", f"/console/{file.name}")  # type: ignore[attr-defined]
    assert (answer.status, answer.headers["content-type"]) == (200, TYPES[file.suffix])  # type: ignore[attr-defined]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["..%2Ffiles.py", "..", "nothing.js", "vendor-licenses.txt", "%00.js"])
async def test_nothing_else_is_served(name: str, rest: Rest) -> None:
    assert (await rest.call("GET", f"/console/{name}")).status == 404


def test_texts_are_never_read_as_markup() -> None:
    ours = [file for file in FILES if file.suffix == ".js" and file.name != "preact.js"]
    for file in ours:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", file.read_text()
        ), file.name


def test_the_files_stay_small() -> None:
    assert sum(file.stat().st_size for file in FILES) < 250_000


def test_no_module_names_another_host() -> None:
    for file in FILES:
        addresses = set(re.findall(r"https?://[\w.]+", file.read_text()))
        assert addresses <= {"http://www.w3.org", "https://broker"}, file.name
