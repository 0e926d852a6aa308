package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.SubscriptionType;

/** Dead letters and retry letters: what the client does with counts, delays and an initial subscription (B-23). */
final class Letters {
    private Letters() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("dead-letter-initial", Letters::initial);
        all.put("dead-letter-batch", Letters::batch);
        all.put("retry-letter", Letters::retry);
    }

    private static ConsumerBuilder<byte[]> consumer(Context context, SubscriptionType type, int times) {
        var policy = DeadLetterPolicy.builder().maxRedeliverCount(times).initialSubscriptionName("morgue").build();
        return context.consumer(type).deadLetterPolicy(policy).negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS);
    }

    private static void acknowledged(Context context) throws Exception {
        eventually(() -> context.stats(context.topic()).contains("\"msgBacklog\":0,"), "the poison to be acknowledged");
    }

    /** Nobody waits for the letters when they come; the initial subscription keeps them. */
    private static void initial(Context context) throws Exception {
        for (var type : List.of(SubscriptionType.Shared, SubscriptionType.Key_Shared)) {
            try (var consumer = consumer(context, type, 3).subscribe(); var producer = context.newProducer()) {
                producer.newMessage().key("k").property("mine", "1").value(Check.bytes("poison")).send();
                for (int count = 0; count < 4; count++) {
                    var message = receive(consumer, 1).get(0);
                    equal(message.getRedeliveryCount(), count, "redelivery count");
                    consumer.negativeAcknowledge(message);
                }
                acknowledged(context);
                nothingMore(consumer);
            }
            try (var dead = context.client().newConsumer().topic(context.topic("s-DLQ")).subscriptionName("morgue")
                    .subscribe()) {
                var letter = receive(dead, 1).get(0);
                equal(Check.text(letter), "poison");
                equal(letter.getKey(), "k");
                equal(letter.getProperty("mine"), "1");
                equal(letter.getProperty("REAL_TOPIC"), context.topic());
                equal(letter.getProperty("REAL_SUBSCRIPTION"), "s");
                dead.acknowledge(letter);
                nothingMore(dead);
            }
        }
    }

    private static void batch(Context context) throws Exception {
        try (var consumer = consumer(context, SubscriptionType.Shared, 2).enableBatchIndexAcknowledgment(true)
                        // The broker hears of them before the refusal.
                        .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.producer().enableBatching(true)
                        .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
            send(producer, texts("a", 0, 10));
            // One refusal brings back all that is left of the batch; of several the client may make two requests.
            var messages = receive(consumer, 10);
            for (var message : messages.subList(0, 4)) {
                consumer.acknowledge(message);
            }
            consumer.negativeAcknowledge(messages.get(9));
            for (int count = 1; count < 3; count++) {
                var again = receive(consumer, 6);
                equal(again.stream().map(Check::text).toList(), texts("a", 4, 10), "refusal " + count);
                consumer.negativeAcknowledge(again.get(5));
            }
            acknowledged(context);
            nothingMore(consumer);
        }
        try (var dead = context.client().newConsumer().topic(context.topic("s-DLQ")).subscriptionName("morgue").subscribe()) {
            equal(sorted(consume(dead, 6)), texts("a", 4, 10));
            nothingMore(dead);
        }
    }

    /** Sent to the retry topic with a delay, twice, then dead. */
    private static void retry(Context context) throws Exception {
        try (var consumer = consumer(context, SubscriptionType.Shared, 2).enableRetry(true).subscribe();
                var producer = context.newProducer()) {
            var id = producer.newMessage().key("k").value(Check.bytes("again")).send();
            var begin = System.nanoTime();
            for (int count = 0; count < 3; count++) {
                var message = receive(consumer, 1).get(0);
                equal(Check.text(message), "again");
                var times = message.getProperty("RECONSUMETIMES");
                equal(times, count == 0 ? null : "" + count, "times");
                if (count > 0) {
                    equal(message.getTopicName(), context.topic("s-RETRY"));
                    equal(message.getProperty("REAL_TOPIC"), context.topic());
                    equal(message.getProperty("ORIGIN_MESSAGE_ID"), id.toString());
                    equal(message.getProperty("DELAY_TIME"), "1600");
                    // A tick of a second early at most (B-21).
                    that(System.nanoTime() - begin > 500_000_000L, "the retry letter came at once");
                }
                begin = System.nanoTime();
                consumer.reconsumeLater(message, 1600, TimeUnit.MILLISECONDS);
            }
            nothingMore(consumer);
        }
        try (var dead = context.client().newConsumer().topic(context.topic("s-DLQ")).subscriptionName("morgue").subscribe()) {
            equal(consume(dead, 1), List.of("again"));
        }
    }
}
