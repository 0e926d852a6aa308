"""Builds a release and proves it: the work of `scripts/release`. Publishes nothing."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
Command = Sequence[str | Path]
VERSION_FILE = Path("broker/config/version.py")
WITH_OWNER = ("README.md", "docs", "examples", "helpers")
OWNER = re.compile(rb"\bOWNER\b")  # of the repository, which has no address yet
COORDINATE = re.compile(rb"(github\.com/|io\.github\.|repository: )OWNER\b")
UNWANTED = re.compile(r"(^|/)(build|dist|__pycache__|\.venv[^/]*|\.git|\.hypothesis|\.[a-z]+_cache)/|\.py[co]$")


class Refused(Exception):
    """A refused release. The text says why, and what to do."""


def version(tree: Path) -> str:
    """Return the version of a checkout."""
    return str(runpy.run_path(str(tree / VERSION_FILE))["VERSION"])


def notes(changelog: str, version: str) -> str:
    """Cut the section of a version out of a changelog, or the unreleased one for a version under development."""
    title = "Unreleased" if ".dev" in version else version
    sections = re.split(r"^## +\[?([^\s\]]+)\]?.*\n", changelog, flags=re.MULTILINE)[1:]
    found = dict(zip(sections[::2], sections[1::2], strict=True)).get(title)
    if found is None:
        raise Refused(f'CHANGELOG.md has no section "## {title}": give "## Unreleased" that name')
    if not found.strip():
        raise Refused(f'the section "## {title}" of CHANGELOG.md is empty: say there what users notice')
    return found.strip() + "\n"


def build(tree: Path, output: Path, python: Path, epoch: int) -> list[Path]:
    """Build a source distribution, and the wheel from that; return the wheel and the source distribution.

    The same tree and time give the same bytes.
    """
    run(
        [python, "-P", "-m", "build", "--no-isolation", "--outdir", output, tree],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )
    for sdist in output.glob("*.tar.gz"):
        sdist.write_bytes(normalized(sdist.read_bytes(), epoch))
    return [*output.glob("*.whl"), *output.glob("*.tar.gz")]


def normalized(sdist: bytes, epoch: int) -> bytes:
    """Pack a source distribution anew with one time, one owner and one order; setuptools writes those of the moment."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            member.mtime = epoch
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def expected_in_wheel(tree: Path) -> set[str]:
    """Return the names that a wheel of this tree must have, its metadata left out."""
    package = tree / "src" / "pulsarium"
    code = {".py", ".pyi", ".proto", ".properties"}
    found = {"pyspark_pulsar/__init__.py", "pulsarium/broker/config/pulsar_keys.txt"}
    for entry in package.iterdir():
        if entry.is_file():
            found.add(f"pulsarium/{entry.name}")
        elif entry.is_dir():
            # The conformance kit has programs of other languages, which are built where they run.
            # Browsers load the files of the console.
            folder = entry.resolve()
            console = folder / "web" / "console" / "static"
            found |= {
                f"pulsarium/{entry.name}/{path.relative_to(folder).as_posix()}"
                for path in folder.rglob("*")
                if path.suffix in code or (path.is_file() and (entry.name == "conformance" or console in path.parents))
            }
    return {name for name in found if "__pycache__" not in name}


def names_in_wheel(wheel: Path) -> set[str]:
    """Return the names in a wheel, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def check_wheel(wheel: Path, tree: Path) -> None:
    """Compare a wheel with the tree that it was built from."""
    found, expected = names_in_wheel(wheel), expected_in_wheel(tree)
    if found != expected:
        raise Refused(f"{wheel.name}: missing {listed(expected - found)}; not wanted {listed(found - expected)}")


def check_sdist(sdist: Path, tree: Path) -> None:
    """Compare a source distribution with the tree that it was built from. Of packages it has what the wheel has."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tree = tree.resolve()
    packages = {entry.resolve() for entry in tree.glob("src/pulsarium/*")}
    files = (path for path in tree.rglob("*") if path.is_file() and not packages.intersection(path.parents))
    expected = {path.relative_to(tree).as_posix() for path in files}
    expected |= {f"src/{name}" for name in expected_in_wheel(tree)}
    missing = {name for name in expected - names if not UNWANTED.search(name)}
    unwanted = {name for name in names if UNWANTED.search(name) and ".egg-info" not in name}
    if missing or unwanted:
        raise Refused(f"{sdist.name}: missing {listed(missing)}; not wanted {listed(unwanted)}")


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def compare(first: Sequence[Path], second: Sequence[Path]) -> None:
    """Compare two builds byte by byte."""
    if [path.name for path in first] != [path.name for path in second]:
        raise Refused(f"two builds made {listed(p.name for p in first)} and {listed(p.name for p in second)}")
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise Refused(f"{one.name} differs between two builds: compare {one} with {other}")


def environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with what the image has, and put a wheel into it; return its interpreter."""
    run([sys.executable, "-m", "venv", "--clear", folder])
    python, locked = folder / "bin" / "python", folder / "requirements.txt"
    uv = (Path(sys.executable).with_name("uv"), "--project", ROOT, "export", "--frozen", "--no-default-groups")
    run([*uv, "--extra", "auth", "--extra", "client", "--no-emit-project", "--output-file", locked])
    pip: Command = (python, "-P", "-m", "pip", "--disable-pip-version-check", "--quiet")
    run([*pip, "install", "--require-hashes", "-r", locked])
    run([*pip, "install", "--no-deps", "--no-index", wheel])
    run([*pip, "check"])
    return python


def round_trip(command: Path, folder: Path) -> None:
    """Serve, produce and consume with an installed command, in an empty folder."""
    serve: Command = (command, "serve", "--port", "0", "--http-port", "0", "--log-level", "warning", "--with-parent")
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=folder) as broker:
        try:
            assert broker.stdout is not None
            ready = broker.stdout.readline().split()
            if ready[:2] != ["pulsarium", "ready"]:
                raise Refused(f"{command} serve printed {' '.join(ready) or 'nothing'} and not its ready line")
            client: Command = (command, "client", "--url", ready[2])
            run([*client, "produce", "-m", "hello", "release"], cwd=folder)
            got = run([*client, "consume", "-s", "release", "-p", "Earliest", "release"], cwd=folder)
            if "content:hello" not in got:
                raise Refused(f"{command} client consume printed no message: {got}")
        finally:
            broker.terminate()
    if broker.returncode:
        raise Refused(f"{command} serve ended with status {broker.returncode}")


def clean_commit(root: Path) -> int:
    """Return the time of the commit that is checked out; refuse a tree with changes."""
    changes = git(root, "status", "--porcelain").splitlines()
    if changes:
        raise Refused(f"the work tree has changes ({changes[0].strip()}, {len(changes)} in all): commit or stash them")
    return int(git(root, "log", "-1", "--format=%ct"))


def tag(root: Path, version: str, text: str) -> str:
    """Make the tag of a version, with its notes; return its name."""
    if ".dev" in version:
        raise Refused(f"{version} is under development: set VERSION in {VERSION_FILE}")
    unnamed = without_owner(root)
    if unnamed:
        raise Refused(
            f"OWNER stands in {listed(path.name for path in unnamed)}: type `scripts/release --owner NAME`, and delete "
            "the sentences that explain OWNER"
        )
    name = f"v{version}"
    if git(root, "tag", "--list", name):
        raise Refused(f"the tag {name} is there: set another VERSION in {VERSION_FILE}")
    git(root, "tag", "--annotate", name, "--cleanup=verbatim", "--message", f"Pulsarium {version}\n\n{text}")
    return name


def without_owner(root: Path) -> list[Path]:
    """Return the files that readers copy from, and that say OWNER for the owner of the repository."""
    tracked = (root / name for name in git(root, "ls-files", *WITH_OWNER).splitlines())
    return [path for path in tracked if path.is_file() and OWNER.search(path.read_bytes())]


def name_owner(root: Path, owner: str) -> None:
    """Write the owner into each coordinate: of Go's module, of Maven's package and of the repository."""
    for path in without_owner(root):
        path.write_bytes(COORDINATE.sub(rb"\g<1>" + owner.encode(), path.read_bytes()))


def git(root: Path, *arguments: str) -> str:
    return run(["git", "-C", root, *arguments]).strip()


def run(command: Command, **options: object) -> str:
    """Run a program to its end; return what it printed, refuse the release when it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        words = " ".join(map(str, command))
        raise Refused(f"`{words}` failed with status {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    return str(done.stdout)


def say(text: str) -> None:
    print(f"scripts/release: {text}", flush=True)


def release(*, tagged: bool) -> None:
    """Take all steps of a release."""
    epoch = clean_commit(ROOT)
    number = version(ROOT)
    text = notes((ROOT / "CHANGELOG.md").read_text(), number)
    work = ROOT / "build" / "release"
    shutil.rmtree(work, ignore_errors=True)
    say(f"building {number} twice")
    python = Path(sys.executable)
    builds = []
    for attempt in ("first", "second"):
        tree = work / attempt / "tree"
        tree.mkdir(parents=True)
        run(["git", "-C", ROOT, "archive", "--output", work / "tree.tar", "HEAD"])
        with tarfile.open(work / "tree.tar") as archive:
            archive.extractall(tree, filter="tar")
        builds.append(build(tree, work / attempt / "dist", python, epoch))
    compare(*builds)
    say("checking what is in them")
    wheel, sdist = builds[0]
    run([python, "-P", "-m", "twine", "check", "--strict", wheel, sdist])
    check_wheel(wheel, work / "second" / "tree")
    check_sdist(sdist, work / "second" / "tree")
    say("installing the wheel into an empty environment, for one message")
    (work / "home").mkdir()
    round_trip(environment(work / "clean", wheel).with_name("pulsarium"), work / "home")
    (work / "notes.md").write_text(text)
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    (ROOT / "dist").mkdir()
    for path in (sdist, wheel):
        say(f"made {shutil.copy(path, ROOT / 'dist')}")
    say(f"made {work / 'notes.md'}")
    if tagged:
        say(f"made the tag {tag(ROOT, number, text)}; `git push --tags` and `twine upload dist/*` publish it")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/release",
        description="Builds the source distribution and the wheel of the commit that is checked out into dist/, twice "
        "and byte for byte the same; checks what is in them, installs the wheel into an empty environment and passes "
        "one message through it; cuts the notes out of CHANGELOG.md. It publishes nothing.",
    )
    parser.add_argument("--tag", action="store_true", help="then make the tag vVERSION, with the notes")
    parser.add_argument("--owner", metavar="NAME", help="only write the repository's owner in place of OWNER")
    chosen = parser.parse_args()
    try:
        if chosen.owner:
            name_owner(ROOT, chosen.owner)
        else:
            release(tagged=chosen.tag)
    except Refused as reason:
        sys.exit(f"scripts/release: {reason}")


if __name__ == "__main__":
    main()
