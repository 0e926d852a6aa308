"""Invalid marks of tests: each ends the run of pytest with one line that says what to do."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from pulsarium.broker.testing import running
from pulsarium.broker.testing.pytest_plugin import marks
from tests.broker.testing.conftest import PYTEST, QUIET


def test_the_options_of_the_mark_are_those_of_running() -> None:
    assert set(marks.OPTIONS) == set(inspect.signature(running).parameters)


def wrong(pytester: pytest.Pytester, mark: str, fixtures: str = "", *options: str) -> str:
    """Run a test with this mark, expect a usage error of one line, and return its text."""
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.pulsar({mark})\ndef test_it({fixtures}):\n    pass\n")
    result = pytester.runpytest_inprocess(*QUIET, "--strict-markers", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in [*result.outlines, *result.errlines] if line.startswith("ERROR: ")]
    return line.partition("::test_it: ")[2]


@pytest.mark.parametrize(
    ("mark", "fixtures", "says"),
    [
        ("polices={}", "pulsar_topic", "pytest.mark.pulsar has no option 'polices'; did you mean 'policies'?"),
        ("foo=1", "pulsar_broker", "pytest.mark.pulsar has no option 'foo'"),
        ("'x'", "pulsar_client", "pytest.mark.pulsar takes its options by name, not ('x',)"),
        (
            "policies={'deduplicationEnable': True}",
            "pulsar_topic",
            "there is no policy 'deduplicationEnable' of a namespace; did you mean 'deduplicationEnabled'?",
        ),
        (
            "policies={'message_ttl_in_seconds': 'x'}",
            "pulsar_namespace",
            "'x' is not a valid value of the policy 'message_ttl_in_seconds'",
        ),
        ("policies=1", "pulsar_namespace", "policies of pytest.mark.pulsar must be a dict of names and values, not 1"),
        (
            "policies={}",
            "pulsar_client",
            (
                "policies of pytest.mark.pulsar have no effect on a test without the fixture pulsar_namespace: add it, "
                "or pulsar_topic"
            ),
        ),
        (
            "set={'maxMessageSize': 1024}",
            "tmp_path",
            (
                "pytest.mark.pulsar has no effect on a test without the fixture pulsar_broker (or one that uses it): "
                "add it"
            ),
        ),
        (
            "brokers=2",
            "pulsar_proxy",
            "brokers of pytest.mark.pulsar has no effect on a test with pulsar_proxy: leave it out",
        ),
        (
            "policies={}, profile='pulsar-4.2'",
            "",
            "pytest.mark.pulsar has no effect on a test without the fixture pulsar_namespace (or pulsar_topic): add it",
        ),
    ],
)
def test_a_mark_without_effect_ends_the_run(mark: str, fixtures: str, says: str, pytester: pytest.Pytester) -> None:
    assert wrong(pytester, mark, fixtures) == says


def test_workers_of_xdist_end_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n\n@pytest.mark.pulsar(polices={})\ndef test_it(pulsar_topic):\n    pass\n")
    result = pytester.run(*PYTEST, "-n", "2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pytest.mark.pulsar has no option 'polices'; did you mean 'policies'?"])


def test_a_fault_of_many_tests_is_said_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        pytestmark = pytest.mark.pulsar(polices={})

        @pytest.mark.parametrize("number", range(10))
        def test_it(pulsar_topic, number):
            pass
    """)
    result = pytester.runpytest_inprocess(*QUIET)
    assert sum("did you mean" in line for line in [*result.outlines, *result.errlines]) == 1


def test_marks_of_other_projects_are_left_alone(pytester: pytest.Pytester) -> None:
    """Marks of this name are ignored in tests without our fixtures, whatever their options, and import nothing."""
    pytester.makepyfile("""
        import sys

        import pytest

        @pytest.mark.pulsar
        def test_bare():
            pass

        @pytest.mark.pulsar("standalone")
        def test_with_arguments():
            pass

        @pytest.mark.pulsar(star="Vela", port=1)
        def test_with_names_of_its_own():
            assert "trio" not in sys.modules
    """)
    pytester.run(*PYTEST).assert_outcomes(passed=3)


def test_the_broker_is_imported_as_it_is(pytester: pytest.Pytester) -> None:
    """Pytest rewrites the assertions of plugins. The plugin lets it rewrite five small modules, and not the broker."""
    pytester.makepyfile("""
        import sys

        def test_it(pulsar_broker):
            names = [name for name in sys.modules if name.startswith("pulsarium.")]
            anew = [name for name in names if "Rewriting" in type(sys.modules[name].__loader__).__name__]
            assert len(names) > 100
            plugin = {f"pulsarium.broker.testing.pytest_plugin{name}" for name in ("", ".marks", ".explore")}
            assert set(anew) <= {"pulsarium.broker", "pulsarium.broker.testing", *plugin}
    """)
    pytester.run(*PYTEST).assert_outcomes(passed=1)


def test_the_import_finder_is_gone_after_the_run(tmp_path: Path) -> None:
    program = "import sys, pytest; pytest.main(['-q']); print([str(finder) for finder in sys.meta_path])"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "PathFinder" in done.stdout
    assert "pulsarium" not in done.stdout.splitlines()[-1]
