"""The production code as modules with their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("proto", "capture", "rest", "broker", "client", "pipeline", "matrix", "kit", "cli")
# Top-level folder -> import name
FOLDERS = {name: f"pulsarium.{name}" for name in ROOMS}
GENERATED = ROOT / "proto" / "generated"


@dataclass(frozen=True)
class Module:
    """A module of the project; `name` is the full import name, `__init__` left out."""

    name: str
    path: Path
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(), str(self.path))

    @cached_property
    def imports(self) -> frozenset[str]:
        """Return the full names of all imports, anywhere in the file. `from a import b` names both `a` and `a.b`."""
        return frozenset(self._imports(types_too=True))

    @cached_property
    def imports_when_run(self) -> frozenset[str]:
        """Return `imports` without those under `if TYPE_CHECKING:`, which only name types."""
        return frozenset(self._imports(types_too=False))

    def _imports(self, *, types_too: bool) -> Iterator[str]:
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.expr):
                continue
            elif types_too or not _is_type_checking(node):
                waiting += ast.iter_child_nodes(node)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        parents = package[: len(package) - node.level + 1]
        return ".".join([*parents, node.module] if node.module else parents)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def modules(folder: str, name: str | None = None) -> list[Module]:
    """Return the modules of a top-level folder, without generated ones.

    `name` is the import name of a folder that FOLDERS does not have.
    """
    base = ROOT / folder
    found = []
    for path in sorted(base.rglob("*.py")):
        if GENERATED in path.parents:
            continue
        parts = path.relative_to(base).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        full = ".".join([name or FOLDERS[folder], *(parts[:-1] if is_package else parts)])
        found.append(Module(full, path, is_package))
    return found


def production() -> list[Module]:
    return [module for folder in FOLDERS for module in modules(folder)]


def within(name: str, package: str) -> bool:
    """Return whether a module's name is `package` or lies below it."""
    return name == package or name.startswith(f"{package}.")
