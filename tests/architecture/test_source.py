"""The reader of imports finds every form of import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import Module, within


@pytest.mark.parametrize(
    ("is_package", "line", "imported"),
    [
        (False, "import pulsarium.proto.entry as e", {"pulsarium.proto.entry"}),
        (False, "from pulsarium import proto", {"pulsarium", "pulsarium.proto"}),
        (False, "from . import x", {"pulsarium.broker.model", "pulsarium.broker.model.x"}),
        (False, "from ..storage import y", {"pulsarium.broker.storage", "pulsarium.broker.storage.y"}),
        (True, "from .x import y", {"pulsarium.broker.model.cursor.x", "pulsarium.broker.model.cursor.x.y"}),
        (True, "from ..x import y", {"pulsarium.broker.model.x", "pulsarium.broker.model.x.y"}),
        (False, "def f():\n    if TYPE_CHECKING:\n        import trio", {"trio"}),
    ],
)
def test_the_imports_of_a_line_are_found_as_full_names(
    tmp_path: Path, is_package: bool, line: str, imported: set[str]
) -> None:
    path = tmp_path / "cursor.py"
    path.write_text(line)
    assert Module("pulsarium.broker.model.cursor", path, is_package).imports == imported


def test_imports_for_types_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    import c")
    module = Module("module", path, is_package=False)
    assert module.imports == {"a", "b", "c"}
    assert module.imports_when_run == {"a", "c"}


def test_within_respects_dots() -> None:
    assert within("a.b", "a.b")
    assert within("a.b.c", "a.b")
    assert not within("a.bc", "a.b")
