package pulsarium.matrix;

import static pulsarium.matrix.Check.consume;
import static pulsarium.matrix.Check.equal;
import static pulsarium.matrix.Check.receive;
import static pulsarium.matrix.Check.send;
import static pulsarium.matrix.Check.text;
import static pulsarium.matrix.Check.texts;
import static pulsarium.matrix.Check.that;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.SubscriptionType;
import pulsarium.matrix.Main.Scenario;

/** Scenarios of messages between producer and consumer. */
final class Messages {
    private Messages() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("produce-consume", Messages::produceConsume);
        all.put("batching", Messages::batching);
        for (var type : CompressionType.values()) {
            all.put("compression-" + type.name().toLowerCase(), cell -> compression(cell, type));
        }
        all.put("chunking", Messages::chunking);
        all.put("delayed", Messages::delayed);
        all.put("non-persistent", Messages::nonPersistent);
        all.put("message-index", Messages::messageIndex);
        all.put("encryption", Messages::encryption);
        all.put("batch-receive", Messages::batchReceive);
        all.put("key-shared", Messages::keyShared);
    }

    private static void produceConsume(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var producer = cell.producer();
        for (var each : texts(0, 10)) {
            producer.newMessage().key("k").property("p", "v").value(Check.bytes(each)).sendAsync();
        }
        producer.flush();
        var messages = receive(consumer, 10);
        equal(Check.textsOf(messages), texts(0, 10));
        for (var message : messages) {
            equal(message.getKey() + message.getProperties(), "k" + Map.of("p", "v"));
            consumer.acknowledge(message);
        }
        consumer.close();
        Check.nothingMore(cell.consumer());
    }

    private static void batching(Cell cell) throws Exception {
        var consumer = cell.consumer();
        send(cell.batches(), texts(0, 10));
        var messages = receive(consumer, 10);
        equal(Check.textsOf(messages), texts(0, 10));
        var ids = messages.stream().map(message -> (MessageIdAdv) message.getMessageId()).toList();
        equal(ids.stream().map(MessageIdAdv::getEntryId).distinct().count(), 1L, "entries");
        equal(ids.stream().map(MessageIdAdv::getBatchIndex).toList(), IntStream.range(0, 10).boxed().toList(), "indexes");
    }

    private static void compression(Cell cell, CompressionType type) throws Exception {
        var consumer = cell.consumer();
        // The client does not compress less than 4 KiB.
        var sent = texts(0, 10).stream().map(each -> each.repeat(1000)).toList();
        send(cell.producing().compressionType(type).create(), sent);
        equal(consume(consumer, 10), sent);
    }

    private static void chunking(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var producer = cell.producing().enableChunking(true).create();
        var large = new byte[6_000_000];
        new Random(1).nextBytes(large);
        var sent = List.of(Check.bytes("before"), large, Check.bytes("behind"));
        for (var each : sent) {
            producer.send(each);
        }
        var got = receive(consumer, 3);
        that(IntStream.range(0, 3).allMatch(place -> Arrays.equals(got.get(place).getData(), sent.get(place))),
                "other messages came back");
    }

    private static void delayed(Cell cell) throws Exception {
        var consumer = cell.consumer(SubscriptionType.Shared);
        var producer = cell.producer();
        long start = System.nanoTime();
        producer.newMessage().deliverAfter(1, TimeUnit.SECONDS).value(Check.bytes("later")).send();
        producer.send(Check.bytes("now"));
        equal(consume(consumer, 2), List.of("now", "later"));
        that(System.nanoTime() - start > 900_000_000L, "too early");
    }

    private static void nonPersistent(Cell cell) throws Exception {
        var topic = cell.topic().replace("persistent://", "non-persistent://");
        var consumer = cell.client().newConsumer().topic(topic).subscriptionName("s").subscribe();
        send(cell.client().newProducer().topic(topic).enableBatching(false).create(), texts(0, 10));
        equal(consume(consumer, 10), texts(0, 10));
    }

    private static void messageIndex(Cell cell) throws Exception {
        var consumer = cell.consumer();
        send(cell.producer(), texts(0, 5));
        var indexes = new ArrayList<Long>();
        for (var message : receive(consumer, 5)) {
            indexes.add(message.getIndex().orElse(-1L));
        }
        equal(indexes, LongStream.range(0, 5).boxed().toList());
    }

    private static void encryption(Cell cell) throws Exception {
        var consumer = cell.consuming(SubscriptionType.Exclusive)
                .defaultCryptoKeyReader("file:" + cell.text("private_key")).subscribe();
        var without = cell.consuming(SubscriptionType.Exclusive).subscriptionName("t")
                .cryptoFailureAction(ConsumerCryptoFailureAction.CONSUME).subscribe();
        var producer = cell.producing().addEncryptionKey("k")
                .defaultCryptoKeyReader("file:" + cell.text("public_key")).create();
        send(producer, texts(0, 3));
        equal(consume(consumer, 3), texts(0, 3));
        that(receive(without, 3).stream().noneMatch(message -> text(message).startsWith("a000")), "in the clear");
    }

    private static void batchReceive(Cell cell) throws Exception {
        var policy = BatchReceivePolicy.builder().maxNumMessages(10).timeout(10, TimeUnit.SECONDS).build();
        var consumer = cell.consuming(SubscriptionType.Exclusive).batchReceivePolicy(policy).subscribe();
        send(cell.producer(), texts(0, 10));
        var got = new ArrayList<String>();
        consumer.batchReceive().forEach(message -> got.add(text(message)));
        equal(got, texts(0, 10));
    }

    private static void keyShared(Cell cell) throws Exception {
        var consumers = List.of(cell.consumer(SubscriptionType.Key_Shared), cell.consumer(SubscriptionType.Key_Shared));
        var producer = cell.producer();
        for (int number = 0; number < 10; number++) {
            for (int key = 0; key < 5; key++) {
                producer.newMessage().key("key-" + key).value(Check.bytes(Integer.toString(number))).sendAsync();
            }
        }
        producer.flush();
        var numbers = new HashMap<String, String>();
        var owners = new HashMap<String, Consumer<byte[]>>();
        int count = 0;
        for (long end = System.nanoTime() + 15_000_000_000L; count < 50 && System.nanoTime() < end;) {
            for (var consumer : consumers) {
                for (var message = consumer.receive(50, TimeUnit.MILLISECONDS); message != null;
                        message = consumer.receive(50, TimeUnit.MILLISECONDS)) {
                    consumer.acknowledge(message);
                    count++;
                    numbers.merge(message.getKey(), text(message), String::concat);
                    that(owners.computeIfAbsent(message.getKey(), key -> consumer) == consumer, "two consumers of a key");
                }
            }
        }
        equal(count, 50, "messages");
        numbers.forEach((key, text) -> equal(text, "0123456789", "order of " + key));
    }
}
