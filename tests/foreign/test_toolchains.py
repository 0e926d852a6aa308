from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.outcomes import Failed, Skipped

from .toolchains import ADMIN, CLI, GO, JAVA, JUNIT, RECORDS, TOXIPROXY, Toolchain, missing, missing_toolchains, require


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    (tmp_path / "one.src").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.src").write_text("2")
    return Toolchain(tmp_path, ("sh", "no-such-tool"), ("*.src", "sub/**/*"), "out/product")


def build(toolchain: Toolchain) -> None:
    toolchain.product.parent.mkdir(exist_ok=True)
    toolchain.product.write_text("")
    toolchain.stamp.write_text(toolchain.fingerprint() + "\n")


def test_a_missing_toolchain_names_its_tools_and_the_command(toolchain: Toolchain) -> None:
    reason = missing(toolchain)
    assert "no no-such-tool on PATH" in reason
    assert "scripts/setup --foreign" in reason
    assert toolchain.folder.name in reason


def test_a_built_toolchain_is_found(toolchain: Toolchain) -> None:
    build(toolchain)
    assert missing(toolchain) == ""
    assert require(toolchain) == toolchain.product
    assert missing_toolchains([toolchain]) == []


def test_changed_sources_need_a_new_build(toolchain: Toolchain) -> None:
    build(toolchain)
    (toolchain.folder / "sub" / "two.src").write_text("3")
    assert "other sources" in missing(toolchain)
    assert len(missing_toolchains([toolchain])) == 1


@pytest.mark.parametrize(("ci", "outcome"), [("", Skipped), ("true", Failed)])
def test_a_plain_run_skips_and_ci_fails(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="scripts/setup --foreign"):
        require(toolchain)


@pytest.mark.parametrize(
    "toolchain", [JAVA, RECORDS, ADMIN, CLI, JUNIT, GO, *TOXIPROXY], ids=lambda toolchain: str(toolchain.folder.name)
)
def test_the_fetch_scripts_compute_the_same_fingerprint(toolchain: Toolchain) -> None:
    require(toolchain)
    assert toolchain.stamp.read_text().strip() == toolchain.fingerprint()
