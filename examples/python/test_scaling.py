import anyio

from pulsarium.client import connect_admin

TOPIC = "topic://public/default/quiet"


def test_segments_without_traffic_merge(pulsar_broker, pulsar_clock):
    async def create():
        async with connect_admin(pulsar_broker.admin_url) as admin:
            await admin.scalable_topics.create_scalable_topic(TOPIC, 2)
            await admin.scalable_topics.get_stats(TOPIC)  # the first use of the controller begins auto scale

    anyio.run(create)
    assert pulsar_broker.why(TOPIC).details["active"] == [0, 1]
    pulsar_clock.advance(600)
    assert pulsar_broker.why(TOPIC).details["active"] == [2]
