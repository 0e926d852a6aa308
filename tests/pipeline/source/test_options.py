"""Options of the source."""

from __future__ import annotations

import dataclasses
import pickle
import re

import pytest

from pulsarium.pipeline.data_source import PulsarDataSource
from pulsarium.pipeline.options import CONNECTION, BadOption
from pulsarium.pipeline.source.options import OPTIONS, SourceOptions
from pulsarium.pipeline.source.places import Earliest, EndOfTopic

URL = {"service.url": "pulsar://localhost:6650", "topic": "t"}


def test_the_source_has_defaults() -> None:
    made = SourceOptions.of(URL)
    assert made.start.everywhere == Earliest()
    assert made.end.everywhere == EndOfTopic()
    assert (made.min_partitions, made.max_records, made.max_bytes, made.fail_on_data_loss) == (0, 250_000, 0, True)
    assert SourceOptions.of(URL, streaming=True).start.everywhere == EndOfTopic()


def test_names_in_any_case() -> None:
    made = SourceOptions.of({"SERVICE.URL": "pulsar://h:1", "TOPIC": "t", "FailOnDataLoss": "FALSE"})
    assert (made.connection.service_url, made.fail_on_data_loss) == ("pulsar://h:1", False)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"topic": "t"}, r"service\.url.* is missing"),
        ({"service.url": "pulsar://h:1"}, "one of the options .*, not none"),
        (URL | {"topics": "a,b"}, "one of the options"),
        (URL | {"topic": "topic://public/default/t"}, "is scalable, and the source cannot read it"),
        (URL | {"topic": "non-persistent://public/default/t"}, "stores no messages to read"),
        ({"service.url": "pulsar://h:1", "topicsPattern": "("}, "regular expression"),
        (URL | {"maxBytesPerTrigger": "10"}, r"needs \.option\(\"admin\.url\""),
        (URL | {"maxBytesPerTrigger": "ten"}, "whole number"),
        (URL | {"minPartitions": "0"}, "whole number of at least 1"),
        (URL | {"failOnDataLoss": "maybe"}, "true or false"),
        (URL | {"undecodable": "skip"}, "must be one of fail, null, not 'skip'"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(given: dict[str, str], match: str) -> None:
    with pytest.raises(BadOption, match=match):
        SourceOptions.of(given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTime"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption, match="a stream has no end"):
        SourceOptions.of(URL | {name: "1000"}, streaming=True)


def test_the_subscription_of_a_query_is_stable() -> None:
    one = SourceOptions.of(URL)
    assert re.fullmatch("spark-pulsar-[0-9a-f]{12}", one.subscription)
    elsewhere = {"service.url": "pulsar://other:1", "topics": "persistent://public/default/t", "startingOffsets": "1:1"}
    assert SourceOptions.of(elsewhere).subscription == one.subscription
    assert SourceOptions.of(URL | {"topic": "u"}).subscription != one.subscription
    assert SourceOptions.of(URL | {"subscriptionPrefix": "mine"}).subscription.startswith("mine-")
    named = SourceOptions.of(URL | {"predefinedSubscription": "audit"})
    assert (named.subscription, named.is_predefined) == ("audit", True)


def test_no_secret_shows_and_all_goes_to_the_workers() -> None:
    secret = {"pulsar.client.authPluginClassName": "AuthenticationToken", "pulsar.client.authParams": "token:s3cret"}
    made = SourceOptions.of(URL | secret)
    assert pickle.loads(pickle.dumps(made)) == made
    assert "s3cret" not in repr(made) + str(made)


def test_the_table_has_every_option_once() -> None:
    names = [one.name for one in OPTIONS]
    assert len(set(names)) == len(names)
    assert all(one.meaning and one.used_by in ("batch", "stream", "both") for one in OPTIONS)
    defaults = {one.name: one.default for one in OPTIONS}
    made = SourceOptions.of(URL)
    assert str(made.max_records) == defaults["maxRecordsPerPartition"]
    assert str(int(made.poll_timeout * 1000)) == defaults["pollTimeoutMs"]
    assert str(made.receiver_queue_size) == defaults["pulsar.reader.receiverQueueSize"]
    assert str(int(made.discovery_interval * 1000)) == defaults["topicDiscoveryIntervalMs"]
    assert len(dataclasses.fields(made)) == 18  # add a new option to the table too


def test_help_names_them_all() -> None:
    text = PulsarDataSource.__doc__ or ""
    for one in (*CONNECTION, *OPTIONS):
        assert f"\n    {one.name}" in text
        assert one.meaning in text
