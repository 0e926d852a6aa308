package pulsarium.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

@PulsariumTest
class RemindersTest {
    @Test
    void aReminderArrivesAfterAWeek(PulsarClient client, @Topic String topic, Clock clock) throws Exception {
        var week = Duration.ofDays(7);
        try (var consumer = subscribe(client, topic);
                var producer = client.newProducer(Schema.STRING).topic(topic).create()) {
            producer.newMessage().value("pay").deliverAfter(7, TimeUnit.DAYS).send();
            var before = clock.now();
            clock.advance(week.plusMinutes(1));
            assertFalse(clock.now().isBefore(before.plus(week)));
            expect(consumer, "pay");
        }
    }

    @Test
    void aFaultActsOnTheNamespaceOfItsTest(PulsarClient client, Pulsarium pulsarium, Faults faults) throws Exception {
        var fault = faults.add("drop", "SEND");
        var other = "persistent://public/default/" + pulsarium.namespace().replace('/', '-');
        assertNotEquals(other, pulsarium.topic("orders"));
        try (var producer = client.newProducer(Schema.STRING).topic(other).create()) {
            producer.send("3 apples");
        }
        assertEquals(0, fault.hits());
    }

    @Test
    @EnabledIfEnvironmentVariable(named = "PULSARIUM_TEST_DIES", matches = "1")
    void thisProcessDies(Faults faults) {
        faults.add("drop", "SEND");
        Runtime.getRuntime().halt(1);
    }

    /** Only a shared subscription delays messages. */
    private static Consumer<String> subscribe(PulsarClient client, String topic) throws PulsarClientException {
        return client.newConsumer(Schema.STRING)
                .topic(topic)
                .subscriptionName("billing")
                .subscriptionType(SubscriptionType.Shared)
                .subscribe();
    }

    private static void expect(Consumer<String> consumer, String value) throws PulsarClientException {
        var message = consumer.receive(30, TimeUnit.SECONDS);
        assertNotNull(message, "no message came");
        assertEquals(value, message.getValue());
    }
}
