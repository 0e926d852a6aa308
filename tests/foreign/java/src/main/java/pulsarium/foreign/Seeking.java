package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.SubscriptionType;

/** Seek by message id and by time, on the subscription type that was asked for. */
final class Seeking {
    private Seeking() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("seek-id", Seeking::id);
        all.put("seek-inclusive", Seeking::inclusive);
        all.put("seek-time", Seeking::time);
        all.put("seek-ends", Seeking::ends);
        all.put("seek-batch", Seeking::intoBatch);
        all.put("seek-partitions", Seeking::partitions);
    }

    /** Waits for the clock that stamps messages to pass `moment`: two publishes on either side share no stamp. */
    static long laterThan(long moment) throws Exception {
        Check.eventually(() -> System.currentTimeMillis() > moment + 2, "the clock to go on");
        return System.currentTimeMillis();
    }

    private static void id(Context context) throws Exception {
        try (var consumer = context.newConsumer(context.type()); var producer = context.newProducer()) {
            var ids = send(producer, texts("a", 0, 20));
            equal(consume(consumer, 20), texts("a", 0, 20));
            consumer.seek(ids.get(10));
            equal(consume(consumer, 9), texts("a", 11, 20), "after a seek to 10");
            nothingMore(consumer);
        }
    }

    private static void inclusive(Context context) throws Exception {
        try (var consumer = context.consumer(context.type()).startMessageIdInclusive().subscribe();
                var producer = context.newProducer()) {
            var ids = send(producer, texts("a", 0, 20));
            equal(consume(consumer, 20), texts("a", 0, 20));
            consumer.seek(ids.get(10));
            equal(consume(consumer, 10), texts("a", 10, 20), "from a seek to 10");
            nothingMore(consumer);
        }
    }

    private static void time(Context context) throws Exception {
        try (var consumer = context.newConsumer(context.type()); var producer = context.newProducer()) {
            send(producer, texts("a", 0, 10));
            long moment = laterThan(System.currentTimeMillis());
            send(producer, texts("a", 10, 20));
            equal(consume(consumer, 20), texts("a", 0, 20));
            consumer.seek(moment);
            equal(consume(consumer, 10), texts("a", 10, 20), "since the moment");
            nothingMore(consumer);
            consumer.seek(moment - 3_600_000);
            equal(consume(consumer, 20), texts("a", 0, 20), "since an hour before");
            consumer.seek(System.currentTimeMillis() + 3_600_000);
            nothingMore(consumer);
        }
    }

    private static void ends(Context context) throws Exception {
        try (var consumer = context.newConsumer(context.type()); var producer = context.newProducer()) {
            send(producer, texts("a", 0, 10));
            equal(consume(consumer, 5), texts("a", 0, 5));
            consumer.seek(MessageId.latest);
            nothingMore(consumer);
            send(producer, texts("b", 0, 1));
            equal(consume(consumer, 1), texts("b", 0, 1));
            consumer.seek(MessageId.earliest);
            equal(consume(consumer, 10), texts("a", 0, 10));
            equal(consume(consumer, 1), texts("b", 0, 1));
        }
    }

    private static void intoBatch(Context context) throws Exception {
        try (var consumer = context.newConsumer(context.type());
                var producer = context.producer().enableBatching(true)
                        .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
            var ids = send(producer, texts("a", 0, 20));
            equal(consume(consumer, 20), texts("a", 0, 20));
            consumer.seek(ids.get(12));
            equal(consume(consumer, 7), texts("a", 13, 20));
            nothingMore(consumer);
        }
    }

    private static void partitions(Context context) throws Exception {
        context.createPartitioned(context.topic(), 3);
        try (var consumer = context.newConsumer(SubscriptionType.Shared); var producer = context.newProducer()) {
            send(producer, texts("a", 0, 30));
            long moment = laterThan(System.currentTimeMillis());
            send(producer, texts("a", 30, 60));
            equal(sorted(consume(consumer, 60)), texts("a", 0, 60));
            consumer.seek(moment);
            equal(sorted(consume(consumer, 30)), texts("a", 30, 60));
            consumer.seek(MessageId.earliest);
            equal(sorted(consume(consumer, 60)), texts("a", 0, 60));
        }
    }
}
