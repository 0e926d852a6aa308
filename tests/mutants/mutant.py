"""A mutant: one small change of the sources that breaks one behavior, which the everyday tests must notice."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class MutantError(Exception):
    """A mutant that does not fit the sources."""


class Mutant(NamedTuple):
    """A row of `rows.py`.

    `old` stands once in `file` and becomes `new`. `breaks` says in one sentence what is wrong then. `first` are the
    test files that should notice; the rest of the everyday tests run only where those pass.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    first: tuple[str, ...]

    def applied(self, root: Path) -> str:
        """Return the text of the mutant's file with the change. Raise `MutantError` when the change does not apply."""
        try:
            text = (root / self.file).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise MutantError(f"{self.name}: there is no {self.file}; name the file that has the code now") from None
        times = text.count(self.old)
        if times != 1:
            line = self.old.strip().splitlines()[0]
            raise MutantError(
                f"{self.name}: its old text stands {times} times in {self.file}, not once; write the row anew: {line!r}"
            )
        return text.replace(self.old, self.new)
