package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class OrdersTest {
    @RegisterExtension
    static final PulsariumExtension BROKER = new PulsariumExtension();

    @Test
    void anOrderReachesItsConsumer() throws Exception {
        var topic = "persistent://public/default/orders";
        BROKER.admin().topics().createNonPartitionedTopic(topic);
        BROKER.admin().topics().createSubscription(topic, "billing", MessageId.earliest);

        try (var producer = BROKER.client().newProducer(Schema.STRING).topic(topic).create()) {
            producer.newMessage().key("customer-1").value("3 apples").send();
        }
        assertEquals(1, backlog(topic));

        try (var consumer = BROKER.client().newConsumer(Schema.STRING)
                .topic(topic).subscriptionName("billing").subscribe()) {
            var message = consumer.receive(30, TimeUnit.SECONDS);
            assertEquals("3 apples", message.getValue());
            assertEquals("customer-1", message.getKey());
            consumer.acknowledgeAsync(message).get();
        }
        assertEquals(0, backlog(topic));
    }

    private static long backlog(String topic) throws Exception {
        return BROKER.admin().topics().getStats(topic).getSubscriptions().get("billing").getMsgBacklog();
    }
}
