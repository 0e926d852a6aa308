package pulsarium.foreign;

import static pulsarium.foreign.Check.SECONDS;
import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;

/** Calls, callbacks and options of consumers and readers that the conformance kit has not. */
final class Consumers {
    private Consumers() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("failover", Consumers::failover);
        all.put("grow", Consumers::grow);
        all.put("pause", Consumers::pause);
        all.put("reader-time", Consumers::readerTime);
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
            var consumer = active.poll(SECONDS, TimeUnit.SECONDS);
            that(consumer != null, "no consumer became active");
            return consumer;
        }
    }

    /** The consumer that gets the message, and acknowledges it. */
    private static Consumer<byte[]> firstToReceive(List<Consumer<byte[]>> consumers, String text) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
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

    private static void grow(Context context) throws Exception {
        context.createPartitioned(context.topic(), 1);
        try (var consumer = context.consumer(SubscriptionType.Exclusive)
                        .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
                var producer = context.producer().autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).create()) {
            send(producer, texts("a", 0, 10));
            equal(consume(consumer, 10), texts("a", 0, 10));
            context.grow(context.topic(), 3);
            var used = new HashSet<String>();
            eventually(() -> {
                send(producer, texts("b", 0, 3));
                receive(consumer, 3).forEach(message -> used.add(message.getTopicName()));
                return used.size() == 3;
            }, "messages through the new partitions");
        }
    }

    private static void pause(Context context) throws Exception {
        try (var producer = context.newProducer();
                var consumer = context.consumer(SubscriptionType.Shared).receiverQueueSize(4).subscribe()) {
            consumer.pause();
            send(producer, texts("a", 0, 40));
            // What the broker already had permits for still comes.
            var got = new ArrayList<String>();
            for (var message = next(consumer); message != null; message = next(consumer)) {
                got.add(Check.text(message));
                consumer.acknowledge(message);
            }
            that(got.size() <= 8, "paused, and " + got.size() + " came");
            consumer.resume();
            got.addAll(consume(consumer, 40 - got.size()));
            equal(got, texts("a", 0, 40));
        }
    }

    private static Message<byte[]> next(Consumer<byte[]> consumer) throws Exception {
        return consumer.receive(Check.QUIET_MS, TimeUnit.MILLISECONDS);
    }

    private static void readerTime(Context context) throws Exception {
        try (var producer = context.newProducer();
                var reader = context.client().newReader().topic(context.topic()).startMessageId(MessageId.latest)
                        .create()) {
            send(producer, texts("a", 0, 5));
            long moment = laterThan(System.currentTimeMillis());
            send(producer, texts("a", 5, 10));
            equal(toEnd(reader), texts("a", 0, 10));
            reader.seek(moment);
            equal(toEnd(reader), texts("a", 5, 10));
            try (var recent = context.client().newReader().topic(context.topic())
                    .startMessageFromRollbackDuration(1, TimeUnit.HOURS).create()) {
                equal(toEnd(recent), texts("a", 0, 10), "since an hour ago");
            }
        }
    }

    private static List<String> toEnd(Reader<byte[]> reader) throws Exception {
        var texts = new ArrayList<String>();
        while (reader.hasMessageAvailable()) {
            var message = reader.readNext(SECONDS, TimeUnit.SECONDS);
            that(message != null, "a message was available, none came");
            texts.add(Check.text(message));
        }
        return texts;
    }

    /** Waits for the clock that stamps messages to pass `moment`: two publishes on either side share no stamp. */
    private static long laterThan(long moment) throws Exception {
        eventually(() -> System.currentTimeMillis() > moment + 2, "the clock to go on");
        return System.currentTimeMillis();
    }
}
