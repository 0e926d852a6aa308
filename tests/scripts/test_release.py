"""The command `scripts/release`: its refusals, its version cuts, and identical builds."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pulsarium.broker.config.version import VERSION
from scripts import release

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

What users notice.

## Unreleased

- Soon.

## 0.2.0 (2026-12-01)

### Added

- Something.

## 0.1.0

- The first.
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with one commit."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file").write_text("content\n")
    for command in (
        ("init", "--quiet"),
        ("config", "user.name", "A"),
        ("config", "user.email", "a@example.org"),
        ("add", "file"),
        ("commit", "--quiet", "--message", "One", "--date", "@1700000000"),
    ):
        release.git(root, *command)
    return root


def packed(files: Mapping[str, bytes], *, mtime: int = 0, mode: int = 0o644) -> bytes:
    """Return the bytes of a source distribution."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"pulsarium-1/{name}")
            member.size, member.mtime, member.mode, member.uname = len(content), mtime, mode, f"user{mtime}"
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def test_the_version_is_the_one_that_the_command_says() -> None:
    assert release.version(ROOT) == VERSION


@pytest.mark.parametrize(
    ("version", "cut"),
    [
        ("0.3.0.dev0", "- Soon.\n"),
        ("0.2.0", "### Added\n\n- Something.\n"),
        ("0.1.0", "- The first.\n"),
    ],
)
def test_notes_are_the_section_of_the_version(version: str, cut: str) -> None:
    assert release.notes(CHANGELOG, version) == cut


@pytest.mark.parametrize(("version", "changelog"), [("0.3.0", CHANGELOG), ("0.3.0", "## 0.3.0\n\n## 0.2.0\n- x\n")])
def test_a_version_without_notes_is_refused(version: str, changelog: str) -> None:
    with pytest.raises(release.Refused, match=r"## 0\.3\.0"):
        release.notes(changelog, version)


def test_the_projects_own_changelog_has_notes() -> None:
    assert release.notes((ROOT / "CHANGELOG.md").read_text(), VERSION)


def test_a_source_distribution_is_the_same_whoever_packs_it_and_when() -> None:
    files = {"b": b"two", "a": b"one"}
    first = release.normalized(packed(files, mtime=1), 1_700_000_000)
    second = release.normalized(packed(dict(reversed(files.items())), mtime=2), 1_700_000_000)
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["pulsarium-1/a", "pulsarium-1/b"]
        assert {(each.mtime, each.uid, each.uname) for each in archive} == {(1_700_000_000, 0, "")}


def test_programs_in_a_source_distribution_can_be_run() -> None:
    normal = release.normalized(packed({"scripts/serve": b"#!"}, mode=0o775), 0)
    with tarfile.open(fileobj=io.BytesIO(normal)) as archive:
        assert archive.getmember("pulsarium-1/scripts/serve").mode == 0o755


def sdist(folder: Path, *names: str) -> Path:
    path = folder / "pulsarium-1.tar.gz"
    path.write_bytes(packed(dict.fromkeys(names, b"")))
    return path


KEYS = "broker/config/pulsar_keys.txt"
WHOLE = ("README.md", f"src/pulsarium/{KEYS}", "src/pyspark_pulsar/__init__.py", "tests/build_it.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a checkout with the files of `WHOLE`, the package at its root."""
    tree = tmp_path / "tree"
    for name in (KEYS, "build/pulsarium.egg-info/x", *(name for name in WHOLE if KEYS not in name)):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "src" / "pulsarium").mkdir()
    (tree / "src" / "pulsarium" / "broker").symlink_to("../../broker")
    return tree


def test_a_source_distribution_with_all_of_the_checkout_is_good(tree: Path, tmp_path: Path) -> None:
    release.check_sdist(sdist(tmp_path, *WHOLE), tree)


@pytest.mark.parametrize("unwanted", ["build/x", "tests/__pycache__/x.pyc", ".venv-3.13/x", "tests/.pytest_cache/x"])
def test_a_source_distribution_with_leftovers_is_refused(unwanted: str, tree: Path, tmp_path: Path) -> None:
    with pytest.raises(release.Refused, match="missing nothing; not wanted"):
        release.check_sdist(sdist(tmp_path, *WHOLE, unwanted), tree)


@pytest.mark.parametrize("name", WHOLE)
def test_a_source_distribution_without_a_file_is_refused(name: str, tree: Path, tmp_path: Path) -> None:
    with pytest.raises(release.Refused, match=f"missing {name}; not wanted nothing"):
        release.check_sdist(sdist(tmp_path, *(each for each in WHOLE if each != name)), tree)


def test_a_wheel_without_a_module_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "pulsarium-1.whl"
    names = sorted(release.expected_in_wheel(ROOT) - {"pulsarium/broker/server.py"})
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    with pytest.raises(release.Refused, match=r"missing pulsarium/broker/server\.py; not wanted nothing"):
        release.check_wheel(wheel, ROOT)


def test_builds_that_differ_are_refused(tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "pulsarium-1.whl"
        path.write_text(name)
        made.append([path])
    release.compare(made[0], made[0])
    with pytest.raises(release.Refused, match="differs between two builds"):
        release.compare(*made)


def test_a_tree_with_changes_is_refused(repository: Path) -> None:
    assert release.clean_commit(repository) > 0
    (repository / "new").touch()
    with pytest.raises(release.Refused, match=r"the work tree has changes \(\?\? new, 1 in all\)"):
        release.clean_commit(repository)


def test_a_tag_has_the_notes(repository: Path) -> None:
    assert release.tag(repository, "1.0.0", "### Added\n\n- It.\n") == "v1.0.0"
    contents = release.git(repository, "tag", "--list", "--format=%(contents)", "v1.0.0")
    assert contents == "Pulsarium 1.0.0\n\n### Added\n\n- It."


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0.dev0"])
def test_a_tag_is_made_once_and_not_under_development(version: str, repository: Path) -> None:
    release.tag(repository, "1.0.0", "x")
    with pytest.raises(release.Refused, match=r"set (another )?VERSION in broker/config/version\.py"):
        release.tag(repository, version, "x")


def test_a_release_needs_the_owner_of_the_repository(repository: Path) -> None:
    page = repository / "README.md"
    page.write_text("github.com/OWNER/pulsarium; io.github.OWNER; {repository: OWNER/pulsarium}; NO_OWNER")
    release.git(repository, "add", "README.md")
    with pytest.raises(release.Refused, match=r"OWNER stands in README\.md: type `scripts/release --owner NAME`"):
        release.tag(repository, "1.0.0", "x")
    release.name_owner(repository, "acme")
    assert page.read_text() == "github.com/acme/pulsarium; io.github.acme; {repository: acme/pulsarium}; NO_OWNER"
    assert release.tag(repository, "1.0.0", "x")


def test_a_refusal_is_no_traceback(repository: Path) -> None:
    """The work tree has a change, so that the command ends before it builds anything."""
    (repository / "scripts").mkdir()
    (repository / "scripts" / "release.py").write_text((ROOT / "scripts" / "release.py").read_text())
    command = [sys.executable, "-P", str(repository / "scripts" / "release.py"), "--tag"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert run.stderr.startswith("scripts/release: the work tree has changes (?? scripts/")
