package pulsarium.foreign;

import static java.nio.charset.StandardCharsets.UTF_8;
import static pulsarium.foreign.Check.SECONDS;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageRouter;
import org.apache.pulsar.client.api.TopicMetadata;

/** Many messages through one way of publishing and consuming them: nothing lost, doubled or out of order. */
final class Matrix {
    private static final String FILLER = " pulsarium".repeat(19);
    private static final int BATCH = 1000;

    private record Arrival(int consumer, String topic, String payload, MessageId id) {
        int number() {
            return Integer.parseInt(payload, 0, 6, 10);
        }
    }

    private Matrix() {
    }

    static void run(Context context) throws Exception {
        int count = context.number("messages");
        if (context.number("partitions") > 1) {
            context.createPartitioned(context.topic(), context.number("partitions"));
        }
        var consumers = new ArrayList<Consumer<byte[]>>();
        for (int place = 0; place < context.number("consumers"); place++) {
            consumers.add(context.consumer(context.type()).consumerName("c" + place).subscribe());
        }
        var collected = collect(consumers, count);
        var ids = publish(context, count);
        var arrivals = new ArrayList<Arrival>();
        for (var each : collected) {
            arrivals.addAll(Check.get(each));
        }
        check(context, count, arrivals, ids);
        for (var consumer : consumers) {
            consumer.close();
        }
        // What was acknowledged stays so for the next consumer.
        try (var next = context.newConsumer(context.type())) {
            Check.nothingMore(next);
        }
    }

    private static List<MessageId> publish(Context context, int count) throws Exception {
        var builder = context.producer()
                .enableBatching(context.flag("batched"))
                .compressionType(CompressionType.valueOf(context.text("compression")))
                .maxPendingMessages(count)
                .blockIfQueueFull(true);
        if (context.flag("batched")) {
            // By itself it turns to the next partition by the clock: 10,000 messages may be sent before it does so twice.
            builder.messageRouter(new MessageRouter() {
                @Override
                public int choosePartition(Message<?> message, TopicMetadata topic) {
                    return Integer.parseInt(new String(message.getData(), UTF_8), 0, 6, 10) / BATCH % topic.numPartitions();
                }
            });
        }
        try (var producer = builder.create()) {
            return Check.send(producer, IntStream.range(0, count).mapToObj(n -> String.format("%06d", n) + FILLER).toList());
        }
    }

    private static List<CompletableFuture<List<Arrival>>> collect(List<Consumer<byte[]>> consumers, int count) {
        var total = new AtomicInteger();
        var all = new ArrayList<CompletableFuture<List<Arrival>>>();
        for (int place = 0; place < consumers.size(); place++) {
            var future = new CompletableFuture<List<Arrival>>();
            var consumer = consumers.get(place);
            int number = place;
            var thread = new Thread(() -> {
                try {
                    future.complete(receive(consumer, number, total, count));
                } catch (Exception failure) {
                    future.completeExceptionally(failure);
                }
            });
            thread.setDaemon(true);
            thread.start();
            all.add(future);
        }
        return all;
    }

    private static List<Arrival> receive(Consumer<byte[]> consumer, int place, AtomicInteger total, int count)
            throws Exception {
        var arrivals = new ArrayList<Arrival>();
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (true) {
            var message = consumer.receive(Check.QUIET_MS, TimeUnit.MILLISECONDS);
            if (message != null) {
                consumer.acknowledgeAsync(message);
                total.incrementAndGet();
                arrivals.add(new Arrival(place, message.getTopicName(), Check.text(message), message.getMessageId()));
            } else if (total.get() >= count || System.nanoTime() > end) {
                return arrivals;
            }
        }
    }

    private static void check(Context context, int count, List<Arrival> arrivals, List<MessageId> ids) {
        var numbers = arrivals.stream().map(Arrival::number).collect(Collectors.toCollection(HashSet::new));
        Check.equal(numbers.size(), count, "different messages");
        Check.equal(arrivals.size(), count, "messages");
        for (var arrival : arrivals) {
            Check.that(arrival.payload().endsWith(FILLER), "changed: " + arrival.payload());
        }
        Check.equal(places(arrivals.stream().map(Arrival::id).toList()), places(ids), "message ids");
        Map<String, List<Arrival>> byTopic = arrivals.stream().collect(Collectors.groupingBy(Arrival::topic));
        Check.equal(byTopic.size(), context.number("partitions"), "partitions");
        if (context.text("subscription").equals("Shared")) {
            return;
        }
        byTopic.forEach((topic, group) -> {
            for (int place = 1; place < group.size(); place++) {
                Check.that(group.get(place - 1).number() < group.get(place).number(), "out of order in " + topic);
            }
            Check.equal(group.stream().map(Arrival::consumer).distinct().count(), 1L, "consumers of " + topic);
        });
    }

    /** In one text form, as receipts and messages use different classes. */
    private static List<String> places(List<MessageId> ids) {
        return Check.sorted(ids.stream().map(MessageId::toString).toList());
    }
}
