"""Skipped tests fail in CI, where all toolchains must exist."""

from __future__ import annotations

import pytest

from tests.house.nothing_skipped import NothingSkipped


def test_skips_fail_and_expected_failures_do_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_module="import pytest\npytest.importorskip('no_such_module')",
        test_functions="""
            import pytest
            def test_skips(): pytest.skip("no toolchain")
            @pytest.mark.skip(reason="never")
            def test_marked(): pass
            @pytest.mark.xfail
            def test_expected(): assert False
            def test_passes(): pass
        """,
    )
    run = pytester.inline_run("--continue-on-collection-errors", plugins=[NothingSkipped()])
    passed, skipped, failed = run.listoutcomes()
    assert len(passed) == 1
    assert [report.wasxfail for report in skipped] == [""]
    reasons = {str(report.longrepr) for report in failed}
    assert "nothing may be skipped here: Skipped: no toolchain" in reasons
    assert len(reasons) == 3
