package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import pulsarium.junit.Faults;
import pulsarium.junit.PulsariumTest;
import pulsarium.junit.Topic;

@PulsariumTest
class OrdersTest {
    @Test
    void anOrderIsStoredWhenItsReceiptIsLost(
            PulsarClient client, PulsarAdmin admin, @Topic("orders") String topic, Faults faults) throws Exception {
        admin.topics().createNonPartitionedTopic(topic);
        admin.topics().createSubscription(topic, "billing", MessageId.earliest);
        var fault = faults.add("close", "SEND", Map.of("stage", "after"));
        try (var producer = client.newProducer(Schema.STRING).topic(topic).create()) {
            producer.send("3 apples");
        }
        fault.await(1);
        try (var consumer = client.newConsumer(Schema.STRING).topic(topic).subscriptionName("billing").subscribe()) {
            assertEquals("3 apples", consumer.receive(30, TimeUnit.SECONDS).getValue());
        }
    }
}
