package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.SubscriptionType;

/** Messages that come again: refused, forgotten, given up, or held by a consumer that left. */
final class Redelivery {
    private Redelivery() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("nack", Redelivery::nack);
        all.put("nack-count", Redelivery::count);
        all.put("nack-batch", Redelivery::batch);
        all.put("redeliver", Redelivery::redeliver);
        all.put("ack-timeout", Redelivery::ackTimeout);
        all.put("dead-letter", Redelivery::deadLetter);
        all.put("consumer-leaves", Redelivery::leaves);
        all.put("failover", Redelivery::failover);
    }

    /** Exclusive and Failover redeliver all that is not acknowledged when the broker is asked, of one message too. */
    private static ConsumerBuilder<byte[]> acknowledgingAtOnce(Context context) {
        return context.consumer(context.type()).acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS);
    }

    private static void nack(Context context) throws Exception {
        try (var consumer = acknowledgingAtOnce(context).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.newProducer()) {
            send(producer, texts("a", 0, 10));
            for (var message : receive(consumer, 10)) {
                if (Check.text(message).equals("a0004")) {
                    consumer.negativeAcknowledge(message);
                } else {
                    consumer.acknowledge(message);
                }
            }
            equal(consume(consumer, 1), List.of("a0004"));
            nothingMore(consumer);
        }
    }

    private static void count(Context context) throws Exception {
        try (var consumer = context.consumer(SubscriptionType.Shared)
                        .negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.newProducer()) {
            send(producer, List.of("again"));
            for (int count = 0; count < 4; count++) {
                var message = receive(consumer, 1).get(0);
                equal(message.getRedeliveryCount(), count, "redelivery count");
                consumer.negativeAcknowledge(message);
            }
            equal(consume(consumer, 1), List.of("again"));
            nothingMore(consumer);
        }
    }

    private static void batch(Context context) throws Exception {
        try (var consumer = context.consumer(SubscriptionType.Shared)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.producer().enableBatching(true)
                        .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
            send(producer, texts("a", 0, 10));
            for (var message : receive(consumer, 10)) {
                consumer.negativeAcknowledge(message);
            }
            equal(consume(consumer, 10), texts("a", 0, 10));
            nothingMore(consumer);
        }
    }

    private static void redeliver(Context context) throws Exception {
        try (var consumer = acknowledgingAtOnce(context).subscribe(); var producer = context.newProducer()) {
            send(producer, texts("a", 0, 20));
            var kept = new ArrayList<String>();
            for (var message : receive(consumer, 20)) {
                if (message.getSequenceId() % 2 == 0) {
                    consumer.acknowledge(message);
                } else {
                    kept.add(Check.text(message));
                }
            }
            consumer.redeliverUnacknowledgedMessages();
            equal(sorted(consume(consumer, 10)), kept);
            nothingMore(consumer);
        }
    }

    private static void ackTimeout(Context context) throws Exception {
        try (var consumer = context.consumer(SubscriptionType.Shared).ackTimeout(1, TimeUnit.SECONDS)
                        .ackTimeoutTickTime(100, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.newProducer()) {
            send(producer, texts("a", 0, 5));
            receive(consumer, 5);
            var again = receive(consumer, 5);
            for (var message : again) {
                that(message.getRedeliveryCount() >= 1, "redelivery count");
                consumer.acknowledge(message);
            }
            nothingMore(consumer);
        }
    }

    private static void deadLetter(Context context) throws Exception {
        var policy = DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(context.topic("dead"))
                .initialSubscriptionName("morgue").build();
        try (var consumer = context.consumer(SubscriptionType.Shared).deadLetterPolicy(policy)
                        .negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS).subscribe();
                var producer = context.newProducer();
                var dead = context.client().newConsumer().topic(context.topic("dead")).subscriptionName("morgue")
                        .subscribe()) {
            send(producer, List.of("poison"));
            for (int count = 0; count < 3; count++) {
                consumer.negativeAcknowledge(receive(consumer, 1).get(0));
            }
            equal(consume(dead, 1), List.of("poison"));
            nothingMore(consumer);
        }
    }

    private static void leaves(Context context) throws Exception {
        try (var producer = context.newProducer(); var stays = context.newConsumer(SubscriptionType.Shared)) {
            var leaves = context.newConsumer(SubscriptionType.Shared);
            send(producer, texts("a", 0, 100));
            receive(leaves, 1);
            leaves.close();
            equal(sorted(consume(stays, 100)), texts("a", 0, 100));
            nothingMore(stays);
        }
    }

    /** Tells which consumer became active; the frames say so, not the messages. */
    private static final class Listener implements ConsumerEventListener {
        private static final long serialVersionUID = 1L;
        private final transient LinkedBlockingQueue<Consumer<?>> active = new LinkedBlockingQueue<>();

        @Override
        public void becameActive(Consumer<?> consumer, int partitionId) {
            active.add(consumer);
        }

        @Override
        public void becameInactive(Consumer<?> consumer, int partitionId) {
        }

        Consumer<?> next() throws Exception {
            var consumer = active.poll(Check.SECONDS, TimeUnit.SECONDS);
            that(consumer != null, "no consumer became active");
            return consumer;
        }
    }

    /** The consumer that gets the message, and acknowledges it. */
    private static Consumer<byte[]> firstToReceive(List<Consumer<byte[]>> consumers, String text) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Check.SECONDS);
        while (System.nanoTime() < end) {
            for (var consumer : consumers) {
                var message = consumer.receive(20, TimeUnit.MILLISECONDS);
                if (message != null) {
                    equal(Check.text(message), text);
                    consumer.acknowledge(message);
                    return consumer;
                }
            }
        }
        throw new AssertionError("no consumer got " + text);
    }

    private static void failover(Context context) throws Exception {
        var listener = new Listener();
        var consumers = new ArrayList<Consumer<byte[]>>();
        for (var name : List.of("a", "b")) {
            consumers.add(context.consumer(SubscriptionType.Failover).consumerName(name).consumerEventListener(listener)
                    .subscribe());
        }
        try (var producer = context.newProducer()) {
            send(producer, texts("a", 0, 100));
            // The first to come is active until the second turns out to be preferred, which it is when messages come.
            var active = firstToReceive(consumers, "a0000");
            var standby = consumers.get(1 - consumers.indexOf(active));
            while (listener.next() != active) {
                continue;
            }
            equal(consume(active, 49), texts("a", 1, 50), "the active one");
            nothingMore(standby);
            active.close();
            equal(listener.next(), standby, "the next active one");
            equal(consume(standby, 50), texts("a", 50, 100), "the standby");
            nothingMore(standby);
            standby.close();
        }
    }
}
