"""Scenarios of schemas."""

from __future__ import annotations

import json
from collections.abc import Callable

from pulsarium.conformance.scenario import Stage, scenario

SOURCE = "Pulsar's documentation, Schema registry"
PERSON = {"name": "Ada", "age": 36}


def _round_trip(kind: str, value: str) -> Callable[[Stage], None]:
    def run(stage: Stage) -> None:
        topic = stage.topic()
        consumer = stage.consumer(topic, schema=kind)
        stage.send(stage.producer(topic, schema=kind), [value])
        (message,) = stage.receive(consumer, 1)
        same = message["value"] == value if kind == "text" else json.loads(message["value"]) == json.loads(value)
        stage.that(same, f"the value is {message['value']}")
        stage.equal(stage.told(message, "schema-version"), 0, "schema version")

    run.__name__ = f"a_value_of_schema_{kind}"
    run.__module__ = __name__
    return run


for _kind, _value in (("text", "grüße"), ("json", json.dumps(PERSON)), ("avro", json.dumps(PERSON))):
    scenario(
        "GET_SCHEMA",
        f"A value of the schema {_kind} arrives as it was, with version 0.",
        SOURCE,
        bug="tells schema-version 7",
    )(_round_trip(_kind, _value))


REFUSALS = ("IncompatibleSchema", "Other")


@scenario("PRODUCER", "A topic of JSON records refuses a producer of text.", SOURCE, bug="succeeds producer")
def another_schema_of_a_producer_is_refused(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic, schema="json"), [json.dumps(PERSON)])
    fields = {"client": stage.client, "topic": topic, "schema": "text", "as": "x"}
    stage.refused(REFUSALS, "producer", **fields)


@scenario("SUBSCRIBE", "A topic of JSON records refuses a consumer of text.", SOURCE, bug="succeeds consumer")
def another_schema_of_a_consumer_is_refused(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic, schema="json"), [json.dumps(PERSON)])
    fields = {"topics": [topic], "subscription": "s", "type": "Exclusive", "start": "earliest", "schema": "text"}
    stage.refused(REFUSALS, "consumer", client=stage.client, **fields, **{"as": "x"})


@scenario(
    "SUBSCRIBE", "A consumer without a schema reads the bytes of a topic with one.", SOURCE, bug='tells value "{}"'
)
def a_consumer_without_a_schema_reads_bytes(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic, schema="json"), [json.dumps(PERSON)])
    (message,) = stage.receive(stage.consumer(topic), 1)
    stage.equal(json.loads(message["value"]), PERSON, "record")


@scenario("GET_SCHEMA", "A reader with the schema of a topic reads its records.", SOURCE, bug='tells value "{}"')
def a_reader_with_the_schema_reads_records(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic, schema="avro"), [json.dumps(PERSON)])
    (message,) = stage.receive(stage.reader(topic, schema="avro"), 1)
    stage.equal(json.loads(message["value"]), PERSON, "record")
