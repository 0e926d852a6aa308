"""Commands that a role may and may not send (transcripts 149 and 151)."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.commands import handlers, lookup
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import by_token, token
from tests.broker.commands.authorized import NAMESPACE, connecting, grant
from tests.broker.wire import TOPIC, Bed, Exclusive, Type, Wire, frame_of, plain, serving

SCALABLE = {Type.SCALABLE_TOPIC_LOOKUP, Type.SCALABLE_TOPIC_SUBSCRIBE, Type.WATCH_SCALABLE_TOPICS}
FAILED = (Type.LOOKUP_RESPONSE, Type.PARTITIONED_METADATA_RESPONSE)
STRING = pb.Schema(name="s", schema_data=b"", type=pb.Schema.String)


async def refusal(wire: Wire, type: int, **fields: Any) -> tuple[int, str]:
    """Send a request that fails, and return the code and the text of its answer."""
    await wire.write(wire.numbered(type, **fields))
    command, _ = await wire.next()
    if command.type in FAILED:
        failed: Any = command.lookupTopicResponse if command.type == FAILED[0] else command.partitionMetadataResponse
        return failed.error, failed.message
    if command.type == Type.GET_SCHEMA_RESPONSE:
        return command.getSchemaResponse.error_code, command.getSchemaResponse.error_message
    if command.type == Type.GET_OR_CREATE_SCHEMA_RESPONSE:
        return command.getOrCreateSchemaResponse.error_code, command.getOrCreateSchemaResponse.error_message
    assert command.type == Type.ERROR, command
    return command.error.error, command.error.message


REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "lookup": (Type.LOOKUP, {"topic": TOPIC}, "Client is not authorized to Lookup"),
    "metadata": (Type.PARTITIONED_METADATA, {"topic": TOPIC}, "Client is not authorized to Get Partition Metadata"),
    "producer": (Type.PRODUCER, {"topic": TOPIC, "producer_id": 0}, "Client is not authorized to Produce"),
    "consumer": (
        Type.SUBSCRIBE,
        {"topic": TOPIC, "subscription": "s", "subType": Exclusive, "consumer_id": 0},
        "Client is not authorized to subscribe",
    ),
    "topics": (
        Type.GET_TOPICS_OF_NAMESPACE,
        {"namespace": NAMESPACE},
        "Client is not authorized to GetTopicsOfNamespace",
    ),
    "watch": (
        Type.WATCH_TOPIC_LIST,
        {"watcher_id": 1, "namespace": NAMESPACE, "topics_pattern": ".*"},
        "Proxy Client is not authorized to watchTopicList",
    ),
    "schema": (Type.GET_SCHEMA, {"topic": TOPIC}, f"Client is not authorized to get the schema of {TOPIC}"),
    "new schema": (
        Type.GET_OR_CREATE_SCHEMA,
        {"topic": TOPIC, "schema": STRING},
        (
            "org.apache.pulsar.broker.service.BrokerServiceException$NotAuthorizedException: "
            f"Client is not authorized to add a schema to {TOPIC}"
        ),
    ),
}
# commands with other answers, and the grants that they need
MAY = {
    "produce": {"lookup", "metadata", "producer", "topics", "watch", "schema", "new schema"},
    "consume": {"lookup", "metadata", "consumer", "topics", "watch", "schema"},
}


@pytest.mark.parametrize("action", ["", "produce", "consume"])
@pytest.mark.serving(by_token())
async def test_a_grant_allows_its_commands_and_no_others(bed: Bed, action: str) -> None:
    if action:
        grant(bed, "me", action)
    for name, (command, fields, text) in REFUSED.items():
        wire = await bed.connect(**connecting("me"))
        if name in MAY.get(action, ()):
            await wire.ask(command, **fields)
        else:
            assert await refusal(wire, command, **fields) == (pb.AuthorizationError, text)


@pytest.mark.serving(by_token())
async def test_superusers_may_everything(bed: Bed) -> None:
    admin = await bed.connect(**connecting("admin"))
    for command, fields, _ in REFUSED.values():
        await admin.ask(command, **fields)


@pytest.mark.serving(by_token())
async def test_a_role_without_grants_leaves_no_schema_behind(bed: Bed) -> None:
    """A role that could register a schema could shut out the producers of the topic."""
    admin = await bed.connect(**connecting("admin"))
    await admin.ask(Type.PRODUCER, topic=TOPIC, producer_id=0)
    nobody = await bed.connect(**connecting("nobody"))
    asked = (Type.GET_OR_CREATE_SCHEMA, {"topic": TOPIC, "schema": STRING})
    assert (await refusal(nobody, asked[0], **asked[1]))[0] == pb.AuthorizationError
    assert (await refusal(admin, Type.GET_SCHEMA, topic=TOPIC))[0] == pb.TopicNotFound


@pytest.mark.serving(by_token(), profile=PULSAR_4_2)
async def test_schemas_are_for_everybody_in_the_released_broker(bed: Bed) -> None:
    admin = await bed.connect(**connecting("admin"))
    await admin.ask(Type.PRODUCER, topic=TOPIC, producer_id=0)
    nobody = await bed.connect(**connecting("nobody"))
    assert (await nobody.ask(Type.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=STRING)).schema_version
    assert (await nobody.ask(Type.GET_SCHEMA, topic=TOPIC)).schema.type == pb.Schema.String


@pytest.mark.serving(by_token())
async def test_a_grant_holds_at_once_and_its_end_too(bed: Bed) -> None:
    wire = await bed.connect(**connecting("me"))
    producer = {"topic": TOPIC, "producer_id": 0}
    assert (await refusal(wire, Type.PRODUCER, **producer))[0] == pb.AuthorizationError
    grant(bed, "me", "produce")
    await wire.ask(Type.PRODUCER, **producer)
    await wire.publish(plain(b"who has a producer may use it"))
    grant(bed, "me")
    assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 0
    assert (await refusal(wire, Type.PRODUCER, topic=TOPIC, producer_id=1))[0] == pb.AuthorizationError


@pytest.mark.req("P-01")
@pytest.mark.serving(by_token())
async def test_an_initial_subscription_needs_both_grants(bed: Bed) -> None:
    grant(bed, "me", "produce")
    wire = await bed.connect(**connecting("me"))
    fields = {"topic": TOPIC, "producer_id": 0, "initial_subscription_name": "s"}
    expected = (pb.AuthorizationError, "Client is not authorized to Produce")
    assert await refusal(wire, Type.PRODUCER, **fields) == expected
    grant(bed, "me", "produce", "consume")
    await wire.ask(Type.PRODUCER, **fields)


@pytest.mark.serving(by_token())
async def test_roles_and_prefixes_of_subscriptions(bed: Bed) -> None:
    grant(bed, "me", "consume", auth={"subscription_auth_roles": {"theirs": ["other"]}})
    wire = await bed.connect(**connecting("me"))
    fields = {"topic": TOPIC, "subType": Exclusive, "consumer_id": 0}
    expected = (pb.AuthorizationError, "Client is not authorized to subscribe")
    assert await refusal(wire, Type.SUBSCRIBE, subscription="theirs", **fields) == expected
    grant(bed, "me", "consume", subscription_auth_mode="Prefix")
    code, text = await refusal(wire, Type.SUBSCRIBE, subscription="mine", **fields)
    assert code == pb.AuthorizationError
    assert text.endswith(f"prefixed by the authentication role, like me-xxxx for topic: {TOPIC}")
    await wire.ask(Type.SUBSCRIBE, subscription="me-1", **fields)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("lookup", pb.AuthorizationError, "Exception occurred while trying to authorize lookup"),
        ("metadata", pb.TopicNotFound, "Tenant or namespace or topic does not exist: nope/ns"),
        ("producer", pb.AuthorizationError, "org.apache.pulsar.broker.web.RestException: Tenant does not exist"),
        ("topics", pb.AuthorizationError, "Exception occurred while trying to authorize GetTopicsOfNamespace"),
        ("watch", pb.AuthorizationError, "Exception occurred while trying to handle command WatchTopicList"),
    ],
)
async def test_of_a_tenant_that_there_is_not(name: str, code: int, text: str) -> None:
    command, fields, _ = REFUSED[name]
    elsewhere = {"topic": "persistent://nope/ns/t", "namespace": "nope/ns"}
    async with serving(by_token()) as bed:
        wire = await bed.connect(**connecting("me"))
        fields = {**fields, **{key: elsewhere[key] for key in elsewhere if key in fields}}
        assert await refusal(wire, command, **fields) == (code, text)


@pytest.mark.serving(by_token())
async def test_a_wrong_name_has_its_own_words(bed: Bed) -> None:
    wire = await bed.connect(**connecting("me"))
    assert (await refusal(wire, Type.LOOKUP, topic="a/b"))[0] == pb.InvalidTopicName


@pytest.mark.serving(by_token())
async def test_a_proxy_and_whom_it_speaks_for_must_both_be_allowed(bed: Bed) -> None:
    grant(bed, "proxy", "produce")
    through = connecting("proxy", original_principal="me")
    wire = await bed.connect(**through)
    assert (await refusal(wire, Type.PRODUCER, topic=TOPIC, producer_id=0))[0] == pb.AuthorizationError
    grant(bed, "proxy", "produce", auth={"namespace_auth": {"proxy": ["produce"], "me": ["produce"]}})
    await wire.ask(Type.PRODUCER, topic=TOPIC, producer_id=0)


REFUSALS: dict[str, tuple[dict[str, Any], int, str]] = {
    "nothing": ({}, pb.AuthenticationError, "Failed to authenticate"),
    "a method without data": ({"auth_method_name": "token"}, pb.AuthenticationError, "Failed to authenticate"),
    "junk": ({"auth_method_name": "token", "auth_data": b"abc"}, pb.AuthenticationError, "Failed to authenticate"),
    "a method that is off": (
        {"auth_method_name": "basic", "auth_data": b"u:p"},
        pb.AuthenticationError,
        "Failed to authenticate",
    ),
    "the number of old clients": (
        {"auth_method": pb.AuthMethodNone, "auth_data": token("me").encode()},
        pb.AuthenticationError,
        "Failed to authenticate",
    ),
    "a principal from who is no proxy": (
        connecting("me", original_principal="other"),
        pb.AuthorizationError,
        "Invalid roles.",
    ),
    "a proxy for nobody": (connecting("proxy"), pb.AuthorizationError, "Invalid roles."),
    "a proxy for itself": (connecting("proxy", original_principal="proxy"), pb.AuthorizationError, "Invalid roles."),
    "a proxy's version": (
        connecting("me", proxy_version="1.0"),
        pb.AuthorizationError,
        "Must not set proxyVersion without connecting as a ProxyRole.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_client_with_wrong_credentials_is_refused(case: str) -> None:
    fields, code, text = REFUSALS[case]
    async with serving(by_token()) as bed:
        wire = bed.dial()
        await wire.write(frame_of(Type.CONNECT, client_version="test", protocol_version=21, **fields))
        command, _ = await wire.next()
        assert (command.error.error, command.error.message) == (code, text)
        assert command.error.request_id == 2**64 - 1
        await wire.closed()


@pytest.mark.serving(by_token(anonymousUserRole="anonymous"))
async def test_a_client_without_credentials_may_be_anonymous(bed: Bed) -> None:
    grant(bed, "anonymous", "produce")
    wire = await bed.connect()
    await wire.ask(Type.PRODUCER, topic=TOPIC, producer_id=0)
    wrong = bed.dial()
    fields: dict[str, Any] = {"auth_method_name": "token", "auth_data": b"junk"}
    await wrong.write(frame_of(Type.CONNECT, client_version="test", protocol_version=21, **fields))
    assert (await wrong.next()).command.error.error == pb.AuthenticationError


async def test_credentials_that_a_proxy_passes_on_are_checked_where_it_is_asked() -> None:
    def through(data: str) -> dict[str, Any]:
        original = {"original_principal": "liar", "original_auth_method": "token", "original_auth_data": data}
        return connecting("proxy", **original)

    async with serving(by_token(authenticateOriginalAuthData=True)) as bed:
        wire = await bed.connect(**through(token("admin")))
        (session,) = sessions_of(bed.broker)
        assert str(session.principal) == "admin"
        await wire.aclose()
        junk = bed.dial()
        await junk.write(frame_of(Type.CONNECT, client_version="test", protocol_version=21, **through("junk")))
        assert (await junk.next()).command.error.error == pb.AuthenticationError
        no_text = bed.dial()
        sent = frame_of(Type.CONNECT, client_version="test", protocol_version=21, **through("zz"))
        await no_text.write(sent.replace(b"zz", b"z\xff"))
        assert (await no_text.next()).command.error.error == pb.AuthenticationError


@pytest.mark.serving(by_token())
async def test_a_lookup_of_a_scalable_topic_needs_a_grant(bed: Bed) -> None:
    bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/t"))
    for role, refused in (("me", True), ("admin", False)):
        wire = await bed.connect(**connecting(role))
        await wire.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=1, topic="topic://public/default/t")
        told = await wire.expect(Type.SCALABLE_TOPIC_UPDATE)
        assert (told.error, told.message) == (
            (pb.AuthorizationError, "Client is not authorized to ScalableTopicLookup") if refused else (0, "")
        )


@pytest.mark.serving(by_token())
async def test_a_registration_with_a_scalable_topic_needs_a_grant(bed: Bed) -> None:
    bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/t"))
    wire = await bed.connect(**connecting("me"))
    await wire.send(
        Type.SCALABLE_TOPIC_SUBSCRIBE,
        request_id=7,
        topic="topic://public/default/t",
        subscription="s",
        consumer_name="c",
        consumer_id=1,
        consumer_type=pb.STREAM,
    )
    told = await wire.expect(Type.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE)
    text = "Client is not authorized to ScalableTopicSubscribe"
    assert (told.request_id, told.error, told.message) == (7, pb.AuthorizationError, text)


def test_messages_are_not_authorized_one_by_one() -> None:
    """The broker authorizes no single message. With authorization off, the usual handlers serve all commands."""
    plain_ones, asked = handlers(connected=True), handlers(connected=True, authorize=True)
    changed = {command for command, handler in plain_ones.items() if asked[command] is not handler}
    assert changed == {command for command, _, _ in REFUSED.values()} | SCALABLE
    assert plain_ones[Type.LOOKUP] is lookup.lookup
