package cookbook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import pulsarium.junit.Clock;
import pulsarium.junit.PulsariumTest;
import pulsarium.junit.Topic;

@PulsariumTest
class RetryTest {
    private static final DeadLetterPolicy TWICE = DeadLetterPolicy.builder().maxRedeliverCount(2).build();

    @Test
    void anOrderIsTriedAgainEachHourAndThenBecomesADeadLetter(
            PulsarClient client, @Topic("orders") String orders, Clock clock) throws Exception {
        try (var consumer = client.newConsumer(Schema.STRING).topic(orders).subscriptionName("billing")
                        .subscriptionType(SubscriptionType.Shared).enableRetry(true).deadLetterPolicy(TWICE).subscribe();
                var repair = client.newConsumer(Schema.STRING).topic(orders + "-billing-DLQ").subscriptionName("repair")
                        .subscribe();
                var producer = client.newProducer(Schema.STRING).topic(orders).create()) {
            producer.send("no order");
            for (int attempt = 0; attempt < 3; attempt++) {
                var message = consumer.receive(30, TimeUnit.SECONDS);
                assertEquals("no order", message.getValue());
                consumer.reconsumeLater(message, 1, TimeUnit.HOURS); // to orders-billing-RETRY, or -DLQ after two retries
                clock.advance(Duration.ofHours(1));
            }
            assertEquals("no order", repair.receive(30, TimeUnit.SECONDS).getValue());
        }
    }
}
