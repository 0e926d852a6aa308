"""REST answers that changed with 5.0.1, as a real broker of that release gave them."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PROFILES, profile_of
from pulsarium.broker.config.proposals import NEGATIVE_ACKS
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, Rest, rest_of
from tests.broker.web.admin.steps import EMPTY, Reason, Step, play
from tests.broker.wire import Bed, serving

NEWER = pytest.mark.serving(profile=PROFILES["pulsar-5.0"])
OLDER = pytest.mark.serving(profile=PROFILES["pulsar-4.2"])
MIGRATE = f"POST {ADMIN}/clusters/c3/migrate?migrated"
SCHEMAS = f"POST {NAMESPACES}/public/default/isAllowAutoUpdateSchema"
REPLICATORS = "allowAutoUpdateSchemaWithReplicator"
CREATION = f"POST {NAMESPACES}/public/default/autoTopicCreation"
NAMES = "subscriptionKeySharedUseClassicPersistentImplementation", "topicLoadTimeoutSeconds"


async def replicators(rest: Rest) -> object:
    return (await rest.get(f"{NAMESPACES}/public/default")).get("is_allow_auto_update_schema_with_replicator")


@NEWER
@pytest.mark.parametrize("url", [{}, {"serviceUrl": ""}, {"brokerServiceUrlTls": " "}])
async def test_a_cluster_migrates_to_a_url_only(rest: Rest, url: dict[str, str]) -> None:
    await play(
        rest,
        Step(f"{MIGRATE}=true", 400, Reason("Cluster url must not be empty"), value=url),
        Step(f"{MIGRATE}=true", 200, value={"serviceUrl": "http://y:1"}),
        Step(f"{MIGRATE}=false", 200, value={}),
        Step(f"GET {ADMIN}/clusters/c3/migrate", 200, {"migrated": False, "migratedClusterUrl": {"empty": True}}),
    )


@OLDER
async def test_before_a_cluster_migrates_to_nowhere(rest: Rest) -> None:
    await play(rest, Step(f"{MIGRATE}=true", 200, value={}))


@NEWER
async def test_replicators_register_schemas_until_that_is_forbidden(rest: Rest) -> None:
    assert await replicators(rest) is True
    await play(rest, Step(SCHEMAS, 204, value=False))
    assert await replicators(rest) is True
    await play(rest, Step(f"{SCHEMAS}?{REPLICATORS}=false", 204, value=False))
    assert await replicators(rest) is False
    text = "Can not enable for all producers but denies for replicators, which is meaningless"
    await play(rest, Step(f"{SCHEMAS}?{REPLICATORS}=false", 400, Reason(text), value=True))
    await play(rest, Step(SCHEMAS, 204, value=True))
    assert await replicators(rest) is False


@OLDER
async def test_before_replicators_had_no_policy(rest: Rest) -> None:
    await play(rest, Step(f"{SCHEMAS}?{REPLICATORS}=false", 204, value=True))
    assert await replicators(rest) is None


@NEWER
@pytest.mark.parametrize(("partitions", "status"), [(0, 204), (1, 204), (3, 412), (-1, 412)])
async def test_an_unpartitioned_topic_may_have_0_or_1_partitions(rest: Rest, partitions: int, status: int) -> None:
    asked = {"allowAutoTopicCreation": True, "topicType": "non-partitioned", "defaultNumPartitions": partitions}
    text = "[defaultNumPartitions] must be null, 0 or 1 when the type is non-partitioned."
    refused = Reason(f"Invalid configuration for autoTopicCreationOverride. the detail is {text}")
    await play(rest, Step(CREATION, status, EMPTY if status == 204 else refused, value=asked))


@pytest.mark.parametrize(("profile", "shown"), [("pulsar-5.0", [False, True]), ("pulsar-4.2", [True, False])])
async def test_each_release_has_its_own_dynamic_settings(autojump_clock: object, profile: str, shown: object) -> None:

    async with serving(profile=PROFILES[profile]) as bed:
        names = await rest_of(bed).get(f"{ADMIN}/brokers/configuration")
    assert [name in names for name in NAMES] == shown


@pytest.mark.serving(profile=profile_of("pip", pip=[NEGATIVE_ACKS]))
async def test_the_limit_of_pip_493_can_be_changed_at_once(bed: Bed, rest: Rest) -> None:
    name = "keySharedNegativeAckMaxRetryingPositionsPerSubscription"
    await play(rest, Step(f"POST {ADMIN}/brokers/configuration/{name}/7", 200))
    assert getattr(bed.broker.config, name) == 7


@NEWER
async def test_a_cluster_has_no_ssl_factory(rest: Rest) -> None:
    assert "brokerClientSslFactoryPlugin" not in await rest.get(f"{ADMIN}/clusters/standalone")
