"""The option explore of the mark: a test runs repeatedly, each time with a broker that makes legal choices."""

from __future__ import annotations

import pytest

from pulsarium.broker.testing import running
from tests.broker.testing.conftest import PYTEST, QUIET

WITH_CACHE = [each for each in PYTEST if each != "-pno:cacheprovider"]
LEDGER = """
    import pytest

    runs = []

    @pytest.fixture(scope="module")
    def once():
        runs.append("once")

    @pytest.fixture
    def payments(pulsar_client, pulsar_topic):
        return pulsar_client.subscribe(pulsar_topic, "ledger")

    @pytest.mark.pulsar(explore={explore}, seed=3, only=["delivery-lost"], rates={{"delivery-lost": 0.5}})
    def test_ledger(once, payments, pulsar_client, pulsar_topic):
        runs.append("run")
        customer, ledger = pulsar_client.create_producer(pulsar_topic), []
        for number in range(4):
            customer.send(b"%d" % number)
            while number not in ledger:
                message = payments.receive(30_000)
                {book}
        payments.acknowledge_cumulative(message)
        assert len(ledger) == 4, "a payment is booked twice"

    def test_fixtures_of_other_tests_go_on(pulsar_topic):
        print("runs:", runs)
"""
BUGGY = "ledger.append(int(message.data()))"
MENDED = "ledger += [int(message.data())] * (int(message.data()) not in ledger)"


def run(pytester: pytest.Pytester, explore: object, book: str) -> pytest.RunResult:
    pytester.makepyfile(LEDGER.format(explore=explore, book=book))
    return pytester.run(*WITH_CACHE, "-s", "--strict-markers")


@pytest.mark.timeout(600)
def test_a_failing_run_is_reduced_and_run_first_next_time(pytester: pytest.Pytester) -> None:
    first = run(pytester, 20, BUGGY)
    first.assert_outcomes(failed=1, passed=1)
    first.stdout.fnmatch_lines(["E *AssertionError: a payment is booked twice*", "*delivery-lost MESSAGE *"])
    first.stdout.fnmatch_lines(['E *@pytest.mark.pulsar(explore=[[]"delivery-lost MESSAGE *"])'])
    again = run(pytester, 1, BUGGY)
    again.assert_outcomes(failed=1, passed=1)
    assert (pytester.path / ".pytest_cache" / "d" / "pulsarium" / "explore-failures").exists()


def test_each_run_has_a_broker_and_fixtures_of_its_own(pytester: pytest.Pytester) -> None:
    result = run(pytester, 3, MENDED)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*runs: [[]'once', 'run', 'run', 'run']"])


IN_FRONT = """
    import pytest

    seen = []

    @pytest.mark.pulsar(explore=3, delete_topics=True)
    def test_it(pulsar_proxy):
        seen.append(pulsar_proxy.service_url)

    def test_each_run_had_a_proxy_of_its_own(pulsar_proxy):
        assert len({*seen}) == 3 and pulsar_proxy.service_url not in seen
"""


def test_a_test_with_a_proxy_is_explored_in_front_of_the_named_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(IN_FRONT)
    with running() as broker:
        urls = (f"-opulsar_proxy_url={broker.service_url}", f"-opulsar_proxy_admin_url={broker.admin_url}")
        pytester.run(*WITH_CACHE, *urls).assert_outcomes(passed=2)


def test_a_proxy_without_a_broker_fails_the_explored_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(IN_FRONT)
    result = pytester.runpytest_inprocess(*QUIET)
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*pulsar_proxy has no broker: set the ini option pulsar_proxy_url*"])


@pytest.mark.parametrize(
    ("fixture", "mark", "says"),
    [
        ("pulsar_topic", "delete_topics=True", "delete_topics of * has no effect on a test with a broker of its own*"),
        ("pulsar_proxy", "brokers=2", "brokers of pytest.mark.pulsar has no effect on a test with pulsar_proxy*"),
        ("pulsar_proxy", "only=['unload']", "*only a broker of Pulsarium can do unload*"),
    ],
)
def test_an_option_of_the_other_side_ends_the_run(
    pytester: pytest.Pytester, fixture: str, mark: str, says: str
) -> None:
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.pulsar(explore=3, {mark})\ndef test_it({fixture}):\n    pass\n")
    result = pytester.runpytest_inprocess(*QUIET, "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    pytest.LineMatcher([*result.outlines, *result.errlines]).fnmatch_lines([f"ERROR: *::test_it: {says}"])


def test_the_parameter_of_a_failure_repeats_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, ["delivery-lost MESSAGE 1"], BUGGY)
    result.assert_outcomes(failed=1, passed=1)


def test_a_test_may_skip_itself(pytester: pytest.Pytester) -> None:
    run(pytester, 3, 'pytest.skip("no ledger here")').assert_outcomes(skipped=1, passed=1)


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("seed=3", "seed of pytest.mark.pulsar has no effect without explore: add the number of runs, explore=200"),
        ("explore=0", "explore of pytest.mark.pulsar must be a number of runs, or a list of decisions, not 0"),
        ("explore=['x']", "explore of pytest.mark.pulsar: 'x' is no decision*"),
        ("explore=3, only=['ack-los']", "*there is no kind 'ack-los'; there are *"),
        ("explore=3, data='x'", "data of pytest.mark.pulsar has no effect with explore: each run has a new broker*"),
    ],
)
def test_an_option_without_effect_ends_the_run(pytester: pytest.Pytester, mark: str, says: str) -> None:
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.pulsar({mark})\ndef test_it(pulsar_topic):\n    pass\n")
    result = pytester.runpytest_inprocess(*QUIET, "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    pytest.LineMatcher([*result.outlines, *result.errlines]).fnmatch_lines([f"ERROR: *::test_it: {says}"])
