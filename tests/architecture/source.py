"""The production code as modules with their imports."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Top-level folder -> import name. The links in src/pulsarium are the list of packages.
FOLDERS = {path.name: f"pulsarium.{path.name}" for path in sorted(ROOT.glob("src/pulsarium/*")) if path.is_symlink()}
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
        """Return the full names of all imports, also of those for types. `from a import b` names both `a` and `a.b`."""
        return frozenset(name for base, names in self._imports() for name in (base, *(f"{base}.{n}" for n in names)))

    def modules_among(self, known: Collection[str]) -> set[str]:
        """Return which of the known modules this one imports: of `from a import b`, the module `a.b` or else `a`."""
        found = {
            full if (full := f"{base}.{name}") in known else base
            for base, names in self._imports()
            for name in names or ("",)
        }
        return found & {*known} - {self.name}

    def _imports(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each module that an import anywhere in the file names, with the names that are taken from it."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Import):
                yield from ((alias.name, []) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield self._absolute(node), [alias.name for alias in node.names]
            elif not isinstance(node, ast.expr):
                waiting += ast.iter_child_nodes(node)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        parents = package[: len(package) - node.level + 1]
        return ".".join([*parents, node.module] if node.module else parents)


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
