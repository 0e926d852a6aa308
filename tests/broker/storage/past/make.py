"""Make a data directory with an older version, and record what that version says of the directory.

    PYTHONPATH=. python -P -m tests.broker.storage.past.make COMMIT NAME [--set KEY=VALUE]...

The program checks COMMIT out into a worktree with an environment of its own, and puts load on a broker there. It ends
the broker with `kill -9`, and packs the folder as NAME.tar.xz. A second broker of that version tells the contents of
a copy, which become NAME.json. The folders, and what each one adds:

    0.1.0  184c0bab  the formats that version 0.1.0 begins with

with --set brokerDeduplicationEntriesInterval=20 --set transactionCoordinatorEnabled=true.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .said import describe

HERE = Path(__file__).parent
LEFT_OUT = ("pulsarium.lock", "pulsarium.db-shm")  # every process that opens the folder makes its own


@contextmanager
def serving(tree: Path, python: Path, data: Path, settings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Serve the folder with a broker of that version, and kill the broker at the end."""
    command = [str(python), "-P", "-m", "pulsarium", "serve", "--port", "0", "--http-port", "0", "--data", str(data)]
    for setting in settings:
        command += ["--set", setting]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tree) as process:
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            yield words[2], words[3]
        finally:
            process.kill()


def make(tree: Path, python: Path, name: str, settings: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        data, copy = Path(scratch, "data"), Path(scratch, "copy")
        with serving(tree, python, data, settings) as (service_url, admin_url):
            load = [sys.executable, "-P", "-m", "tests.broker.storage.past.load", service_url, admin_url]
            subprocess.run(load, check=True)
        shutil.copytree(data, copy)
        with serving(tree, python, copy, settings) as (service_url, admin_url):
            said = describe(service_url, admin_url)
        (HERE / f"{name}.json").write_text(json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as packed:
            for path in sorted(data.iterdir()):
                if path.name not in LEFT_OUT:
                    packed.add(path, path.name, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("name")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--python", type=Path, help="an environment that has what the version needs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        subprocess.run(["git", "worktree", "add", "--detach", tree, given.commit], check=True)
        try:
            if given.python is None:
                subprocess.run([tree / "scripts" / "setup"], check=True)
            make(tree, given.python or tree / ".venv" / "bin" / "python", given.name, given.set)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True)


if __name__ == "__main__":
    main()
