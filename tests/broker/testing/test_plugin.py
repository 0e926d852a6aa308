"""Fixtures and options of the pytest plugin, as users' test files use them, in a pytest of their own."""

from __future__ import annotations

import ast
import inspect
import re
import signal
import subprocess
from textwrap import dedent

import pytest

from pulsarium.broker.clock import NamespaceTime
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing import pytest_plugin, running
from pulsarium.broker.testing.pytest_plugin import marks
from tests.broker.testing.conftest import PYTEST
from tests.docs.blocks import ROOT, TESTED, blocks, matches
from yardsticks.servers import ending

EXAMPLES = ROOT / "examples" / "python"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return Run(pytester)


class Run:
    """A runner of test files, each in a process of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def __call__(self, source: str, *options: str, ini: str = "") -> pytest.RunResult:
        self._pytester.makepyfile(source)
        self._pytester.makeini(f"[pytest]\naddopts = --strict-markers\n{ini}")
        return self._pytester.run(*PYTEST, *options)


def test_one_broker_serves_all_tests_and_each_test_has_its_own_topic(run: Run) -> None:
    result = run("""
        from pathlib import Path
        import pytest

        kept = {}

        @pytest.fixture(scope="session")
        def policies_of(pulsar_broker):
            return lambda name: pulsar_broker.call(lambda it: it.broker.metadata.namespaces.get(name))

        def test_a_namespace_for_each(pulsar_namespace, pulsar_topic, policies_of, pulsar_broker):
            assert pulsar_namespace == "public/test_a_namespace_for_each"
            assert pulsar_topic == f"persistent://{pulsar_namespace}/topic"
            assert policies_of(pulsar_namespace)["replication_clusters"] == ["standalone"]
            kept["namespace"], kept["broker"] = pulsar_namespace, pulsar_broker

        def test_that_goes(policies_of, pulsar_broker):
            assert policies_of(kept["namespace"]) is None
            assert pulsar_broker is kept["broker"]

        @pytest.mark.parametrize("text", ["a/b c", ""])
        def test_with_any_name(pulsar_namespace, text):
            assert pulsar_namespace == ("public/test_with_any_name-a-b-c" if text else "public/test_with_any_name")

        @pytest.mark.pulsar(policies={"deduplicationEnabled": True})
        class TestPolicies:
            def test_of_the_class(self, pulsar_namespace, policies_of):
                assert policies_of(pulsar_namespace)["deduplicationEnabled"] is True

            @pytest.mark.pulsar(policies={"message_ttl_in_seconds": 5})
            def test_of_the_test(self, pulsar_namespace, policies_of):
                assert policies_of(pulsar_namespace)["message_ttl_in_seconds"] == 5
                assert "deduplicationEnabled" not in policies_of(pulsar_namespace)

        def test_a_rule(pulsar_client, pulsar_topic, pulsar_faults):
            rule = pulsar_faults.observe("SEND")
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            assert rule.hits == 1
            pulsar_faults.add("close", "*", count=None)

        def test_that_is_gone(pulsar_client, pulsar_topic, pulsar_broker):
            assert pulsar_broker.faults.rules == []
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            pulsar_broker.assert_produced(pulsar_topic, 1)

        def test_the_clock(pulsar_clock):
            pulsar_clock.freeze()
            pulsar_clock.advance(3600)
            assert pulsar_clock.offset_ms > 3_500_000  # the machine's clock goes on

        def test_that_is_right_again(pulsar_broker):
            assert abs(pulsar_broker.clock.offset_ms) < 1000
            assert not pulsar_broker.clock.frozen

        def test_that_closes_its_client(pulsar_client):
            pulsar_client.close()

        def test_well_spoken(pulsar_linter, pulsar_client, pulsar_topic):
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            assert not [each for each in pulsar_linter.violations() if each.side == "client"]
    """)
    result.assert_outcomes(passed=12)


def test_a_test_fails_when_the_broker_breaks_a_promise(run: Run) -> None:
    """Two tests publish and receive. For the second one, the broker delivers each message twice."""
    result = run("""
        import pytest
        from pulsarium.broker.model.subscription.base import Consumer

        @pytest.fixture
        def twice(monkeypatch):
            deliver = Consumer.deliver
            monkeypatch.setattr(Consumer, "deliver", lambda *args, **kwargs: [deliver(*args, **kwargs) for _ in "12"])

        def exchange(client, topic):
            consumer = client.subscribe(topic, "s")
            client.create_producer(topic).send(b"a")
            return [consumer, consumer.receive(30_000)]

        def test_kept(pulsar_checker, pulsar_client, pulsar_topic):
            exchange(pulsar_client, pulsar_topic)
            assert pulsar_checker.tally().kept["permits-exceeded"] == 1

        def test_broken(pulsar_checker, pulsar_client, pulsar_topic, twice):
            consumer, _ = exchange(pulsar_client, pulsar_topic)
            consumer.receive(30_000)

        def test_that_is_not_blamed_for_the_test_before(pulsar_checker, pulsar_client):
            pass
    """)
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["E *AssertionError: a promise of Pulsar was broken:", "E *delivered-again: *"])


def test_the_file_that_the_docs_show(run: Run) -> None:
    source = (EXAMPLES / "test_scaling.py").read_text()
    assert len(source.splitlines()) <= 20
    run(source).assert_outcomes(passed=1)


def test_the_first_page_shows_what_its_tests_print(pytester: pytest.Pytester) -> None:
    source = (EXAMPLES / "test_payments.py").read_text()
    assert len(source.splitlines()) <= 20
    unmarked = re.sub("^@pytest.mark.*\n", "", source, flags=re.M)
    assert unmarked != source
    pytester.makepyfile(test_payments=source, test_unmarked=unmarked)
    result = pytester.run(*PYTEST, "-v")
    result.assert_outcomes(passed=3, failed=1)
    page = list(blocks(ROOT / "docs" / "index.md"))
    shown = [block.text.removeprefix("$ pytest -v\n") for block in page if block.language == "console"]
    assert len(shown) == 2
    assert [text for text in shown if not matches(text.replace("\n", "...\n"), result.stdout.str())] == []


def test_brokers_of_several_kinds(run: Run) -> None:
    result = run(
        """
        import pytest

        seen = {}

        def of(broker):
            return broker.call(lambda it: (it.broker.profile.name, it.broker.config.maxMessageSize, len(it.brokers)))

        def test_of_the_ini(pulsar_broker):
            assert of(pulsar_broker) == ("pulsar-4.2", 2048, 1)
            seen["ini"] = pulsar_broker

        @pytest.mark.pulsar(profile="pip", set={"dispatcherMaxReadBatchSize": 7})
        def test_of_a_mark(pulsar_namespace, pulsar_broker):
            assert of(pulsar_broker) == ("pip", 2048, 1)
            assert pulsar_broker is not seen["ini"]
            seen["mark"] = pulsar_broker

        @pytest.mark.pulsar(set={"dispatcherMaxReadBatchSize": 7}, profile="pip")
        def test_of_the_same_mark(pulsar_broker):
            assert pulsar_broker is seen["mark"]

        @pytest.mark.parametrize("pulsar_broker", [{"brokers": 2}, {"max_protocol_version": 12}], indirect=True)
        def test_of_parameters(pulsar_broker):
            assert of(pulsar_broker) in (("pulsar-4.2", 2048, 2), ("pulsar-4.2", 2048, 1))

        def test_of_the_ini_again(pulsar_broker):
            assert pulsar_broker is seen["ini"]

        @pytest.mark.pulsar(profile="pulsar-1")
        def test_of_none(pulsar_broker):
            raise AssertionError("it must not start")
        """,
        "-v",
        ini="pulsar_profile = pulsar-4.2\npulsar_set =\n    maxMessageSize = 2048\n",
    )
    result.assert_outcomes(passed=6, errors=1)
    result.stdout.fnmatch_lines(
        ["*::test_of_a_mark PASSED*", "E *ConfigError: profile: 'pulsar-1' is not one of pip, pulsar-5.0*"]
    )


def test_proposals_of_the_ini_are_on_where_no_mark_names_others(run: Run) -> None:
    result = run(
        """
        import pytest

        def on(broker):
            return broker.call(lambda it: it.broker.profile.proposals)

        def test_of_the_ini(pulsar_broker):
            assert on(pulsar_broker) == {488, 490}

        @pytest.mark.pulsar(pip=[490])
        def test_of_a_mark(pulsar_broker):
            assert on(pulsar_broker) == {490}
        """,
        ini="pulsar_pip = 488 490\n",
    )
    result.assert_outcomes(passed=2)


def test_a_proxy_in_front_of_the_broker_that_the_ini_names(run: Run) -> None:
    test = """
        import pulsar
        import pytest

        def test_a_fault(pulsar_proxy, pulsar_namespace):
            client = pulsar.Client(pulsar_proxy.service_url)
            topic = f"persistent://{pulsar_namespace}/t"
            with pulsar_proxy.faults.add("close", "SEND", topic=topic) as rule:
                client.create_producer(topic).send(b"x")
            assert rule.hits == 1
            client.close()
        """
    page = blocks(ROOT / "docs" / "real-clusters.md")
    shown = [each.text for each in page if (each.marker, each.language) == (TESTED, "python")]
    with running() as broker:
        ini = f"pulsar_proxy_url = {broker.service_url}\npulsar_proxy_admin_url = {broker.admin_url}\n"
        result = run(dedent(test) + "".join(shown), ini=f"{ini}pulsar_admin_url = {broker.admin_url}")
    result.assert_outcomes(passed=2)


def test_a_proxy_without_a_broker_says_what_to_set(run: Run) -> None:
    result = run("def test_it(pulsar_proxy): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*set the ini option pulsar_proxy_url, or PULSAR_PROXY_URL, to pulsar://HOST:PORT*"])


def test_failures_name_the_line_of_the_test(run: Run) -> None:
    result = run("""
        def test_produced(pulsar_broker, pulsar_topic):
            pulsar_broker.assert_produced(pulsar_topic, 1, timeout=0.01)

        def test_rule(pulsar_namespace, pulsar_faults):
            pulsar_faults.add("drop", "SEND").wait(timeout=0.01)
    """)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            ">       pulsar_broker.assert_produced(pulsar_topic, 1, timeout=0.01)",
            "E       AssertionError: there is no topic persistent://public/test_produced/topic; its namespace has none",
            "test_*.py:2: AssertionError",
            ">       pulsar_faults.add(*wait(timeout=0.01)",
            "E       AssertionError: <fault 1: Drop() of SEND, 0 hits> after 0.01 s, not 1; 0 frames matched",
        ]
    )
    assert "/broker/testing/" not in result.stdout.str()


def test_workers_share_nothing(run: Run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.parametrize("number", range(10))
        def test_it(pulsar_broker, pulsar_client, pulsar_topic, number, tmp_path):
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            pulsar_broker.assert_produced(pulsar_topic, 1)
        """,
        *("-n", "2"),
    )
    result.assert_outcomes(passed=10)


def test_many_tests_on_one_broker(run: Run) -> None:
    result = run("""
        import pytest

        @pytest.mark.parametrize("number", range(50))
        def test_it(pulsar_broker, pulsar_client, pulsar_topic, number):
            consumer = pulsar_client.subscribe(pulsar_topic, "s")
            pulsar_client.create_producer(pulsar_topic).send(b"%d" % number)
            assert consumer.receive(30_000).data() == b"%d" % number

        def test_none_is_left(pulsar_namespace, pulsar_broker):
            left = pulsar_broker.call(lambda it: [name for name in it.broker.metadata.namespaces if "test_it" in name])
            assert len(left) < 5  # of clients that are only now being noticed to have left
    """)
    result.assert_outcomes(passed=51)


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_ends_it(pytester: pytest.Pytester) -> None:
    file = pytester.makepyfile("""
        def test_it(pulsar_namespace, pulsar_faults):
            rule = pulsar_faults.observe("SEND")
            print("waiting", flush=True)
            rule.wait(timeout=1000)
    """)
    with ending(subprocess.Popen([*PYTEST, "-s", file], stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "waiting" in line:
                break
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=50)[0]
    assert re.search("KeyboardInterrupt", output)
    assert process.returncode == pytest.ExitCode.INTERRUPTED


def test_without_a_broker_it_is_not_in_the_way(run: Run) -> None:
    result = run("""
        import sys

        import pytest

        @pytest.mark.pulsar("a mark of the user's own")
        def test_marked():
            pass

        def test_it():
            assert "pulsarium.broker.server" not in sys.modules
            assert "trio" not in sys.modules
    """)
    result.assert_outcomes(passed=2)


def test_the_plugin_uses_nothing_private_of_pytest() -> None:
    """Users load the plugin in every run of pytest."""
    for module in (pytest_plugin, marks):
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
        asked = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self"}
        named = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        private = {name for name in asked | named | imported if name.startswith("_") and not name.startswith("__")}
        assert private == set()


OWN_TIME = """
    import json
    import urllib.request
    from datetime import timedelta

    import pytest
    from pulsar import ConsumerType, InitialPosition

    DAYS, DAY_MS, MONTH = {days}, 86_400_000, 30 * 86_400

    def backlog(broker, topic):
        path = topic.replace("://", "/")
        with urllib.request.urlopen(f"{{broker.admin_url}}/admin/v2/{{path}}/stats") as answer:
            return json.load(answer)["subscriptions"]["s"]["msgBacklog"]

    @pytest.mark.pulsar(policies={{"message_ttl_in_seconds": MONTH}})
    def test_own_time(pulsar_broker, pulsar_client, pulsar_namespace, pulsar_topic, pulsar_clock):
        consumer = pulsar_client.subscribe(pulsar_topic, "s", ConsumerType.Shared)
        old = f"persistent://{{pulsar_namespace}}/old"
        pulsar_client.subscribe(old, "s").close()
        pulsar_client.create_producer(old).send(b"old")
        producer = pulsar_client.create_producer(pulsar_topic)
        pulsar_clock.freeze()
        began = pulsar_clock.now_ms()
        for days in (DAYS, DAYS + 1):
            producer.send(b"%d" % days, deliver_after=timedelta(days=days))

        # all tests meet here, each with a frozen clock
        pulsar_client.create_producer("persistent://public/default/meeting").send(pulsar_namespace.encode())
        meeting = pulsar_client.subscribe(
            "persistent://public/default/meeting", pulsar_namespace, initial_position=InitialPosition.Earliest
        )
        others = {{meeting.receive(400_000).data().decode() for _ in range(8)}}
        assert len(others) == 8
        assert pulsar_clock.now_ms() == began

        pulsar_clock.advance(timedelta(days=DAYS, minutes=10))
        assert consumer.receive(60_000).data() == b"%d" % DAYS
        assert pulsar_clock.now_ms() - began == DAYS * DAY_MS + 600_000
        assert pulsar_clock.next_in == pytest.approx(86_400, abs=1200)  # the next message waits
        assert backlog(pulsar_broker, old) == 1
        pulsar_clock.advance(MONTH)
        assert backlog(pulsar_broker, old) == 0
        assert abs(pulsar_broker.clock.offset_ms) < 1000
"""


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_eight_workers_on_one_broker_have_eight_clocks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{f"test_{days}": OWN_TIME.format(days=days) for days in range(1, 9)})
    with running() as broker:
        most: list[int] = []

        def watch(it: RunningCluster) -> None:
            clock, lab = it.broker.clock, it.lab.clock
            part = clock.part

            def parted(line: NamespaceTime) -> None:
                part(line)
                most.append(len(lab.namespaces))

            clock.part = parted  # type: ignore[method-assign]

        broker.call(watch)
        options = ("-pxdist", "-n8", "--dist=loadfile", f"--pulsar-url={broker.admin_url}", "-pno:cacheprovider")
        result = pytester.run(*PYTEST, *options)
        result.assert_outcomes(passed=8)
        assert max(most) == 8
        assert broker.clock.namespaces == []


def test_a_run_uses_the_broker_of_pulsarium_exec(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as broker:
        monkeypatch.setenv("PULSARIUM_ADMIN_URL", broker.admin_url)
        result = run(f"""
            import pytest

            def test_the_broker_that_runs(pulsar_broker, pulsar_topic, pulsar_clock):
                assert pulsar_broker.admin_url == "{broker.admin_url}"
                pulsar_clock.advance(86_400)
                assert pulsar_broker.clock.namespaces == ["public/test_the_broker_that_runs"]

            def test_all_is_over(pulsar_broker):
                assert pulsar_broker.clock.namespaces == []

            @pytest.mark.pulsar(set={{"maxMessageSize": 1024}})
            def test_a_broker_of_its_own(pulsar_broker):
                assert pulsar_broker.admin_url != "{broker.admin_url}"
        """)
        result.assert_outcomes(passed=3)


def test_options_of_the_ini_file_cannot_change_a_broker_that_runs(run: Run) -> None:
    result = run("def test(): pass", "--pulsar-url=http://127.0.0.1:1", ini="pulsar_set = maxMessageSize=1024\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*pulsar_set cannot change the broker at http://127.0.0.1:1: start that broker with *")


def test_the_clock_of_a_test_with_a_namespace_is_its_own(run: Run) -> None:
    result = run("""
        def test_with_a_topic(pulsar_broker, pulsar_topic, pulsar_namespace, pulsar_clock):
            pulsar_clock.advance(86_400)
            assert pulsar_broker.clock.namespaces == [pulsar_namespace]
            assert abs(pulsar_broker.clock.offset_ms) < 1000

        def test_that_deletes_its_namespace(pulsar_broker, pulsar_namespace, pulsar_clock):
            pulsar_clock.freeze()
            pulsar_broker.delete_namespace(pulsar_namespace)

        def test_without(pulsar_broker, pulsar_clock):
            assert pulsar_broker.clock.namespaces == []
            pulsar_clock.advance(86_400)
            assert pulsar_broker.clock.offset_ms > 80_000_000
    """)
    result.assert_outcomes(passed=3)


def test_a_fault_of_a_test_acts_on_its_own_namespace(run: Run) -> None:
    result = run("""
        import pytest
        from pulsarium.testing import FaultError

        def test_its_own(pulsar_broker, pulsar_client, pulsar_topic, pulsar_faults):
            elsewhere = pulsar_broker.create_topic(pulsar_broker.create_namespace("elsewhere") + "/topic")
            own, every, named = (
                pulsar_faults.observe("SEND"),
                pulsar_faults.observe("SEND", everywhere=True),
                pulsar_faults.observe("SEND", topic=elsewhere),
            )
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            producer = pulsar_client.create_producer(elsewhere)
            for text in (b"b", b"c"):
                producer.send(text)
            assert (own.hits, every.hits, named.hits) == (1, 3, 2)

        def test_a_command_before_any_topic(pulsar_topic, pulsar_faults):
            with pytest.raises(FaultError, match="CONNECT comes before its connection names a topic.*everywhere=True"):
                pulsar_faults.add("drop", "CONNECT", client_version="Pulsar*")
            assert pulsar_faults.rules == []
            pulsar_faults.add("drop", "CONNECT", client_version="nobody*", everywhere=True)
            assert len(pulsar_faults.rules) == 1

        def test_without_a_namespace(pulsar_faults):
            with pytest.raises(FaultError, match="no namespace of its own.*pulsar_topic.*everywhere=True"):
                pulsar_faults.add("drop", "SEND", topic="orders")
            pulsar_faults.add("drop", "SEND", topic="public/default/orders")
    """)
    result.assert_outcomes(passed=3)


SHARED = """
    from pulsar import InitialPosition

    MEETING = "persistent://public/default/meeting-{{}}"

    def meet(client, name, time):
        client.create_producer(MEETING.format(time)).send(name.encode())
        meeting = client.subscribe(MEETING.format(time), name, initial_position=InitialPosition.Earliest)
        assert len({{meeting.receive(400_000).data() for _ in range(4)}}) == 4

    def test_it(pulsar_client, pulsar_namespace, pulsar_topic, pulsar_faults):
        lost = pulsar_faults.add("close", "SEND", stage="after") if {faulty} else None
        sent = pulsar_faults.observe("SEND")
        producer = pulsar_client.create_producer(pulsar_topic)
        meet(pulsar_client, pulsar_namespace, "before")
        for text in (b"a", b"b", b"c"):
            producer.send(text)
        meet(pulsar_client, pulsar_namespace, "after")  # all faults stay until all tests have sent
        assert sent.hits == (4 if {faulty} else 3)  # a message is sent again without a receipt
        assert lost is None or lost.hits == 1
"""


@pytest.mark.timeout(600)
def test_a_fault_of_a_worker_leaves_the_other_workers_of_one_broker_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{f"test_{number}": SHARED.format(faulty=number < 2) for number in range(4)})
    with running() as broker:
        options = ("-pxdist", "-n4", "--dist=loadfile", f"--pulsar-url={broker.admin_url}", "-pno:cacheprovider")
        pytester.run(*PYTEST, *options).assert_outcomes(passed=4)
        assert broker.faults.rules == []


def test_the_linter_of_a_test_judges_the_clients_of_its_namespace(run: Run) -> None:
    result = run("""
        import socket

        from pulsarium.proto.framing import frame
        from pulsarium.proto.generated import PulsarApi_pb2 as pb

        def careless(broker, faults, topic):
            \"\"\"Use a request id twice.\"\"\"
            connect = pb.CommandConnect(client_version="careless", protocol_version=19)
            lookup = pb.CommandLookupTopic(topic=topic, request_id=7)
            commands = [
                pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect),
                *[pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)] * 2,
            ]
            with faults.observe("LOOKUP", topic=topic) as seen:
                with socket.create_connection(("127.0.0.1", int(broker.service_url.rpartition(":")[2]))) as client:
                    client.sendall(b"".join(frame(command.SerializeToString()) for command in commands))
                    seen.wait(2)

        def test_another(pulsar_linter, pulsar_broker, pulsar_faults, pulsar_namespace):
            careless(pulsar_broker, pulsar_faults, "persistent://public/default/other")

        def test_its_own(pulsar_linter, pulsar_broker, pulsar_faults, pulsar_topic):
            careless(pulsar_broker, pulsar_faults, pulsar_topic)

        def test_without_a_namespace(pulsar_linter, pulsar_broker, pulsar_faults):
            careless(pulsar_broker, pulsar_faults, "persistent://public/default/other")
    """)
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_its_own*", "*ERROR at teardown of test_without_a_names*"])


def test_the_checker_of_a_test_judges_the_topics_of_its_namespace(run: Run) -> None:
    """The broker delivers each message of a topic twice, which belongs to another test."""
    result = run("""
        import pytest
        from pulsarium.broker.model.subscription.base import Consumer

        def test_another(pulsar_checker, pulsar_client, pulsar_topic, monkeypatch):
            pulsar_client.create_producer(pulsar_topic).send(b"a")
            deliver = Consumer.deliver
            monkeypatch.setattr(Consumer, "deliver", lambda *args, **kwargs: [deliver(*args, **kwargs) for _ in "12"])
            consumer = pulsar_client.subscribe("persistent://public/default/other", "s")
            pulsar_client.create_producer("persistent://public/default/other").send(b"a")
            for _ in "12":
                consumer.receive(30_000)
    """)
    result.assert_outcomes(passed=1)
