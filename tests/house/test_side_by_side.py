from __future__ import annotations

import pytest

from .side_by_side import group_of

CONFTEST = """
    import pytest
    from tests.house.side_by_side import SideBySide

    def pytest_configure(config): config.pluginmanager.register(SideBySide())

    def pytest_collection_finish(session):
        for item in session.items: print("GROUP", *item.get_closest_marker("xdist_group").args)
"""
SUITE = """
    import pytest

    @pytest.fixture(scope="session")
    def spark(): return 1

    def test_alone(): pass

    def test_on_spark(spark): pass
"""


@pytest.mark.parametrize(
    ("fixtures", "group"), [([], "tests/a/test_b.py"), (["topic"], "tests/a/test_b.py"), (["topic", "spark"], "spark")]
)
def test_groups(fixtures: list[str], group: str) -> None:
    assert group_of("tests/a/test_b.py::test_c[1::2]", fixtures) == group


def test_every_test_has_its_group(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_one=SUITE, test_other=SUITE)
    pytester.makeini("[pytest]\nmarkers =\n    xdist_group")
    result = pytester.runpytest_inprocess("-p", "no:trio", "-s")
    printed = [line.split()[1] for line in result.outlines if line.startswith("GROUP ")]
    assert printed == ["test_one.py", "spark", "test_other.py", "spark"]
