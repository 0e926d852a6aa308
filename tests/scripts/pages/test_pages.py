"""Pages of docs/ that are generated are complete, their rules have tests, and docs/launchers.md says what ran."""

from __future__ import annotations

import inspect
import re
from itertools import chain
from pathlib import Path

import pytest

from pulsarium.broker.lab.arguments import Which
from pulsarium.broker.lab.faults import ACTIONS
from pulsarium.broker.testing import pytest_plugin
from pulsarium.client import errors
from scripts.pages import launchers
from scripts.pages.client import OPTIONS, Explained, client_page, fields_of
from scripts.pages.faults import fault_page
from scripts.pages.fields import field_rows, fields_page, optional_fields
from scripts.pages.launchers import Seen
from scripts.pages.names import SECTIONS, names_page
from tests.scripts.pages.named_tests import exists

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("explained", [explained for _, explained in OPTIONS])
def test_every_option_is_explained(explained: Explained) -> None:
    found = fields_of(explained)
    assert found
    assert [field.name for field in found if not field.text] == []
    assert all(f"| `{field.name}` |" in client_page() for field in found)
    if inspect.isfunction(explained):
        taken = inspect.signature(explained).parameters.keys() - {"self"}
        assert {field.name for field in found} == taken


def test_every_error_is_there() -> None:
    page = client_page()
    assert "| `ProducerFenced` | " in page
    assert "`PulsarError` |" not in page
    assert all(f"| `{error.__name__}` | " in page for error in errors.BY_CODE.values())


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_is_there(kind: str) -> None:
    (row,) = (line for line in fault_page().splitlines() if f"| `{kind}` |" in line)
    assert row.startswith(f"| `{ACTIONS[kind].__name__}(")
    assert len(row.split("|")[3]) > 10


def test_every_argument_is_there() -> None:
    for name in ("command", *Which.__annotations__):
        assert any(line.startswith(f"| `{name}` | ") and len(line) > 25 for line in fault_page().splitlines())


@pytest.mark.parametrize(
    "row",
    [
        "| SEND | client | yes | yes | yes | yes |",
        "| FLOW | client |  |  |  |  |",
        "| MESSAGE | broker |  |  | yes |  |",
        "| PING | both |  | yes |  |  |",
        "| LOOKUP | client | yes | yes |  | yes |",
    ],
)
def test_the_page_lists_each_fault(row: str) -> None:
    assert row in fault_page().splitlines()


def test_each_optional_field_has_one_row() -> None:
    assert sorted((row.command, name) for row in field_rows() for name in row.names) == sorted(optional_fields())


@pytest.mark.parametrize("test", sorted({row.test for row in field_rows()}))
def test_the_test_of_each_field_exists(test: str) -> None:
    assert exists(test)


def test_the_page_has_each_row() -> None:
    page = fields_page()
    assert all(f"| {row.effect} | `{row.test.rpartition('::')[2]}` |" in page for row in field_rows())
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == list(
        dict.fromkeys(row.command for row in field_rows())
    )


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "RECORD", tmp_path / "launchers.json")


@pytest.mark.usefixtures("record")
def test_a_row_has_the_versions_that_ran() -> None:
    launchers.write_record([Seen("quarkus", {"quarkus-messaging-pulsar": "3.33.2"}, ["a", "b"], [])])
    assert "| quarkus-messaging-pulsar 3.33.2 | 2 |" in launchers.launchers_page()


@pytest.mark.usefixtures("record")
def test_a_failed_test_is_named_in_its_row() -> None:
    launchers.write_record([Seen("quarkus", {}, ["a"], ["anOrderReachesItsChannel"])])
    assert "| 1; **failed: anOrderReachesItsChannel** |" in launchers.launchers_page()


def test_each_recorded_example_is_there_and_passed() -> None:
    record = launchers.read_record()
    assert record
    for seen in record:
        assert (EXAMPLES / seen.launcher).is_dir()
        assert seen.passed
        assert not seen.failed


RULES = list(chain.from_iterable(SECTIONS.values()))


@pytest.mark.parametrize("test", sorted({rule.test for rule in RULES}))
def test_the_test_of_each_rule_exists(test: str) -> None:
    assert exists(test)


def test_each_rule_is_a_row() -> None:
    page = names_page()
    assert sum(line.startswith("| ") and not line.startswith("| name") for line in page.splitlines()) == len(RULES)
    assert all(f"| {rule.form} | {rule.rule} |" in page for rule in RULES)


@pytest.mark.parametrize("name", sorted(name for name in vars(pytest_plugin) if name.startswith("pulsar_")))
def test_the_page_has_each_fixture_with_its_type(name: str) -> None:
    page = (DOCS / "fixtures.md").read_text("utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` | "))
    shown = str(inspect.signature(inspect.unwrap(getattr(pytest_plugin, name))).return_annotation)
    types = re.sub(r"\[\w+\]", "", re.sub(r"^Iterator\[(.*)\]$", r"\1", shown)).replace("Any", "pulsar.Client")
    assert re.findall(r"`([\w.]+)`", row.split("|")[2]) == list(dict.fromkeys(types.split(" | ")))


def test_each_page_with_a_placeholder_says_so() -> None:
    pages = [*DOCS.rglob("*.md"), *(DOCS.parent / "helpers").glob("*/README.md")]
    texts = {page: page.read_text("utf-8") for page in pages}
    shown = {page for page, text in texts.items() if re.search(r"\bOWNER\b", text)}
    module = (DOCS.parent / "helpers" / "go" / "go.mod").read_text()
    assert bool(shown) == ("OWNER" in module)  # `scripts/release --owner` leaves none
    explained = re.compile(r"OWNER stands for|for OWNER|\(index\.md#go\)")
    assert {page for page in shown if not explained.search(texts[page])} == set()


FIGURES = {
    "from launch to a client's connection": "launch to CONNECTED",
    "memory of an idle broker": "VmRSS, idle",
    "memory of a broker that has served all these loads": "VmRSS, loaded",
    "messages a second published in batches": "publish, batched: rate",
    "messages a second published without batches": "publish, unbatched: rate",
    "messages a second from a Shared subscription, batched": "consume + ack, Shared, batched: rate",
    "messages a second from a Shared subscription, unbatched": "consume + ack, Shared, unbatched: rate",
    "a send that waits for its receipt, 99 of 100": "send and wait for the receipt: p99",
    "topics created a second over REST": "a topic created over REST, 1 connection: rate",
}
WITH_FIGURES = [DOCS.parent / "README.md", *(DOCS / f"{name}.md" for name in ("index", "why-pulsarium", "performance"))]


@pytest.mark.parametrize("page", WITH_FIGURES, ids=str)
def test_figures_of_a_page_are_those_of_the_measurements(page: Path) -> None:
    shown = {name: figures for line in page.read_text("utf-8").splitlines() for name, *figures in [_cells(line)]}
    measured = [_cells(line) for line in (DOCS / "measurements.md").read_text("utf-8").splitlines()]
    named = FIGURES.keys() & shown.keys()
    assert len(named) >= 2
    for name in named:
        figures = next(row[1:3] for row in measured if row[0] == FIGURES[name])
        assert [_number(each) for each in shown[name][:2]] == [
            pytest.approx(_number(each), rel=0.05) for each in figures
        ]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def _number(text: str) -> float:
    found = re.match(r"[\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", ""))
