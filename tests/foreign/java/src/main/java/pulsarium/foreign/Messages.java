package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.fails;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.that;

import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/** Messages come back as they were sent: fields and sizes. */
final class Messages {
    private static final int LIMIT = 5 * 1024 * 1024;

    private Messages() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("fields", Messages::fields);
        all.put("large", Messages::large);
        all.put("too-large", Messages::tooLarge);
        all.put("chunks", Messages::chunks);
        all.put("chunks-shared", Messages::sharedChunks);
        all.put("key-batches", Messages::keyBatches);
    }

    private static void fields(Context context) throws Exception {
        for (var batched : new boolean[] {false, true}) {
            try (var consumer = context.newConsumer(SubscriptionType.Exclusive);
                    var producer = context.producer().producerName("me").enableBatching(batched).create()) {
                var id = producer.newMessage().value(new byte[] {0, -1, 7}).property("a", "1").property("ü", "ключ")
                        .key("key").orderingKey(new byte[] {9}).eventTime(1_234_567_890_123L).sequenceId(77).send();
                var message = receive(consumer, 1).get(0);
                consumer.acknowledge(message);
                that(Arrays.equals(message.getData(), new byte[] {0, -1, 7}), "payload");
                equal(message.getProperties(), Map.of("a", "1", "ü", "ключ"));
                equal(message.getKey(), "key");
                that(Arrays.equals(message.getOrderingKey(), new byte[] {9}), "ordering key");
                equal(message.getEventTime(), 1_234_567_890_123L);
                equal(message.getSequenceId(), 77L);
                equal(message.getProducerName(), "me");
                equal(message.getTopicName(), context.topic());
                equal(message.getMessageId(), id, "message id");
                equal(message.getRedeliveryCount(), 0);
            }
        }
    }

    private static byte[] random(int size) {
        var bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    private static void large(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive); var producer = context.newProducer()) {
            for (int size : new int[] {100_000, 1_000_000, LIMIT - 1024}) {
                producer.send(random(size));
                that(Arrays.equals(receive(consumer, 1).get(0).getData(), random(size)), size + " bytes");
            }
        }
    }

    private static void tooLarge(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive); var producer = context.newProducer()) {
            fails(PulsarClientException.InvalidMessageException.class, () -> producer.send(new byte[LIMIT + 1]));
            producer.send(random(10));
            that(Arrays.equals(receive(consumer, 1).get(0).getData(), random(10)), "the next one");
        }
    }

    private static void chunks(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive);
                var producer = context.producer().enableChunking(true).create()) {
            for (int size : new int[] {12_000_000, 10, 6_000_000}) {
                producer.send(random(size));
                that(Arrays.equals(receive(consumer, 1).get(0).getData(), random(size)), size + " bytes");
            }
        }
    }

    /** All chunks of a message go to one of several consumers. */
    private static void sharedChunks(Context context) throws Exception {
        var sizes = new TreeSet<Integer>();
        try (var one = context.consumer(SubscriptionType.Shared).receiverQueueSize(2).subscribe();
                var two = context.consumer(SubscriptionType.Shared).receiverQueueSize(2).subscribe();
                var first = context.producer().enableChunking(true).create();
                var second = context.producer().enableChunking(true).create()) {
            for (int number = 0; number < 8; number++) {
                sizes.add(5_300_000 + number);
                (number % 2 == 0 ? first : second).sendAsync(random(5_300_000 + number));
            }
            for (int round = 0; round < 600 && !sizes.isEmpty(); round++) {
                var consumer = round % 2 == 0 ? one : two;
                var message = consumer.receive(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    that(Arrays.equals(message.getData(), random(message.size())), message.size() + " bytes");
                    that(sizes.remove(message.size()), message.size() + " bytes again");
                    consumer.acknowledge(message);
                }
            }
            equal(sizes.size(), 0, "messages that did not come");
            eventually(() -> context.stats(context.topic()).contains("\"msgBacklog\":0,"), "all chunks acknowledged");
        }
    }

    private static void keyBatches(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Shared);
                var producer = context.producer().enableBatching(true).batcherBuilder(BatcherBuilder.KEY_BASED).create()) {
            for (int number = 0; number < 100; number++) {
                producer.newMessage().key("k" + number % 5).value(Check.bytes("" + number)).sendAsync();
            }
            producer.flush();
            equal(receive(consumer, 100).stream().map(message -> Integer.valueOf(Check.text(message))).distinct().count(),
                    100L);
        }
    }
}
