"""Helpers for the tests of wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.architecture.source import ROOT


def copied(tree: Path) -> Path:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout
    for name in filter(lambda name: os.path.lexists(ROOT / name), listed.splitlines()):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    return tree
