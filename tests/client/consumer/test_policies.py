from __future__ import annotations

import re
from typing import Any

import pytest

from pulsarium.client.consumer.options import ConsumerKeySharedPolicy, ConsumerOptions, ReaderOptions
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    MultiplierRedeliveryBackoff,
)
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.message_id import MessageId


def test_a_backoff_multiplies_up_to_its_end() -> None:
    backoff = MultiplierRedeliveryBackoff(min_delay=1, max_delay=60, multiplier=2)
    assert [backoff.next(count) for count in (0, 1, 2, 5, 6, 7, 10**9)] == [1, 2, 4, 32, 60, 60, 60]
    assert MultiplierRedeliveryBackoff(min_delay=0, max_delay=5).next(3) == 0
    assert MultiplierRedeliveryBackoff(min_delay=5, max_delay=5).next(3) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"min_delay": -1},
        {"min_delay": 2, "max_delay": 1},
        {"multiplier": 1},
    ],
    ids=str,
)
def test_backoffs_that_make_no_sense(options: dict[str, float]) -> None:
    with pytest.raises(InvalidConfiguration):
        MultiplierRedeliveryBackoff(**options)


def test_policies_that_make_no_sense() -> None:
    with pytest.raises(InvalidConfiguration, match="max_redeliver_count"):
        ConsumerDeadLetterPolicy(0)
    with pytest.raises(InvalidConfiguration, match="batch receive"):
        ConsumerBatchReceivePolicy(0, -1, 0)
    for limits in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        assert ConsumerBatchReceivePolicy(*limits).timeout == limits[2]


@pytest.mark.parametrize(
    "options",
    [
        {"unacked_messages_timeout": 0.9},
        {"negative_ack_redelivery_delay": -1},
        {"acknowledgement_group_time": -1},
        {"max_acknowledgement_group_size": 0},
        {"priority_level": -1},
        {"key_shared_policy": ConsumerKeySharedPolicy()},
        {"receiver_queue_size": 0, "topic": ["a", "b"]},
        {"receiver_queue_size": 0, "topic": re.compile("a")},
        {"receiver_queue_size": 0, "retry_enable": True},
    ],
    ids=str,
)
def test_policies_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        ConsumerOptions(**{"topic": "t", "subscription_name": "s", **options})


def test_a_reader_needs_a_queue() -> None:
    with pytest.raises(InvalidConfiguration, match="receiver_queue_size"):
        ReaderOptions("t", MessageId.earliest, receiver_queue_size=0)
