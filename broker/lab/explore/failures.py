"""The file of scripts that have failed, which are run first next time. A line is JSON: application and script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pulsarium.broker.lab.explore.kinds import check
from pulsarium.broker.lab.explore.script import Script, ScriptError, parse

MOST = 50  # scripts of one application that are kept: the newest


class Failures:
    """The failed scripts of one application in a file. Other applications may use the same file."""

    def __init__(self, path: Path, of: str) -> None:
        self.path = path
        self._of = of

    def scripts(self) -> Sequence[Script]:
        """Return the scripts of the application, oldest first. Raise `ScriptError` for a file of another form.

        Scripts with kinds that this version does not know are left out.
        """
        return [script for of, script in self._read() if of == self._of and _is_known(script)]

    def add(self, script: Script) -> None:
        """Add a script, unless the file has it. Raise `OSError` when the file cannot be written."""
        known = self._read()
        if (self._of, script) in known:
            return
        mine = [each for each in known if each[0] == self._of][-(MOST - 1) :]
        kept = [*(each for each in known if each[0] != self._of), *mine, (self._of, script)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"of": of, "script": [*map(str, each)]}) for of, each in kept]
        self.path.write_text("".join(f"{line}\n" for line in lines))

    def _read(self) -> list[tuple[str, Script]]:
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return []
        found = []
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                found.append((str(entry["of"]), tuple(map(parse, entry["script"]))))
            except (ValueError, TypeError, KeyError, AttributeError):
                raise ScriptError(f"{self.path}, line {number}, is no failure: delete the line or the file") from None
        return found


def _is_known(script: Script) -> bool:
    try:
        check(script)
    except ScriptError:
        return False
    return True
