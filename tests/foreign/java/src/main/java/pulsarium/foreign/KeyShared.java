package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.that;

import com.google.gson.JsonArray;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.common.util.Murmur3_32Hash;

/** Key_Shared: a key has one consumer at a time, whoever joins or leaves. */
final class KeyShared {
    private static final int KEYS = 100;
    /** Consumers at the beginning, and at most; one always stays. */
    private static final int START = 4;
    private static final int MOST = 7;
    /** How far consumers may be behind the producer. */
    private static final int BEHIND = 200;

    private KeyShared() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("key-shared-churn", KeyShared::churn);
        all.put("key-shared-sticky", KeyShared::sticky);
    }

    private static Producer<byte[]> producer(Context context, boolean batched) throws Exception {
        return context.producer().enableBatching(batched).batcherBuilder(BatcherBuilder.KEY_BASED)
                .maxPendingMessages(0).create();
    }

    private static void publish(Producer<byte[]> producer, int rounds) throws Exception {
        for (int number = 0; number < rounds * KEYS; number++) {
            producer.newMessage().key("key-" + number % KEYS).value(Check.bytes("" + number)).sendAsync();
        }
        producer.flush();
    }

    /** Of each consumer: key -> numbers of its share of the next `count` messages, acknowledged. */
    private static List<Map<String, List<Integer>>> receive(List<Consumer<byte[]>> consumers, int count)
            throws Exception {
        var shares = new ArrayList<Map<String, List<Integer>>>();
        consumers.forEach(each -> shares.add(new TreeMap<>()));
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Check.SECONDS);
        for (int got = 0; got < count;) {
            that(System.nanoTime() < end, got + " of " + count + " messages");
            for (int place = 0; place < consumers.size(); place++) {
                Message<byte[]> message;
                while ((message = consumers.get(place).receive(20, TimeUnit.MILLISECONDS)) != null) {
                    consumers.get(place).acknowledge(message);
                    shares.get(place).computeIfAbsent(message.getKey(), key -> new ArrayList<>())
                            .add(Integer.valueOf(Check.text(message)));
                    got++;
                }
            }
        }
        return shares;
    }

    private static void sticky(Context context) throws Exception {
        var ranges = new TreeMap<String, Range>();
        ranges.put("low", Range.of(0, 29_999));
        ranges.put("high", Range.of(50_000, 65_535));
        var consumers = new HashMap<String, Consumer<byte[]>>();
        for (var each : ranges.entrySet()) {
            consumers.put(each.getKey(), subscribe(context, each.getKey(), each.getValue()));
        }
        try (var producer = producer(context, false)) {
            publish(producer, 2);
        }
        ranges.put("gap", Range.of(30_000, 49_999));
        for (var name : List.of("low", "high", "gap")) {
            if (name.equals("gap")) {
                consumers.put(name, subscribe(context, name, ranges.get(name)));
            }
            var wanted = new HashSet<String>();
            for (int number = 0; number < KEYS; number++) {
                int hash = Murmur3_32Hash.getInstance().makeHash(Check.bytes("key-" + number)) % 65536;
                if (ranges.get(name).contains(Range.of(hash, hash))) {
                    wanted.add("key-" + number);
                }
            }
            var got = receive(List.of(consumers.get(name)), 2 * wanted.size()).get(0);
            equal(got.keySet(), wanted, "keys of " + name);
            got.forEach((key, numbers) -> equal(numbers.size(), 2, key));
            nothingMore(consumers.get(name));
        }
    }

    private static Consumer<byte[]> subscribe(Context context, String name, Range range) throws Exception {
        return context.consumer(SubscriptionType.Key_Shared).consumerName(name)
                .keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(range)).subscribe();
    }

    /** What consumers did, in order: "consumer received|acknowledged key number", "consumer left". */
    private static final class Log {
        private final List<String> lines = new ArrayList<>();
        private final HashSet<Integer> received = new HashSet<>();

        synchronized void note(String consumer, String what, Message<byte[]> message) {
            int number = Integer.parseInt(Check.text(message));
            lines.add(consumer + " " + what + " " + message.getKey() + " " + number);
            received.add(number);
        }

        synchronized void left(String consumer) {
            lines.add(consumer + " left");
        }

        synchronized int received() {
            return received.size();
        }

        synchronized JsonArray told() {
            var array = new JsonArray();
            lines.forEach(array::add);
            return array;
        }
    }

    /** One consumer, in a thread of its own; it acknowledges in order, up to `behind` messages late. */
    private static final class Member extends Thread {
        private final Consumer<byte[]> consumer;
        private final Log log;
        private final int behind;
        private final ArrayDeque<Message<byte[]>> held = new ArrayDeque<>();
        private volatile boolean leaving;

        Member(Consumer<byte[]> consumer, Log log, int behind) {
            this.consumer = consumer;
            this.log = log;
            this.behind = behind;
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                while (!leaving) {
                    var message = consumer.receive(20, TimeUnit.MILLISECONDS);
                    if (message != null) {
                        log.note(consumer.getConsumerName(), "received", message);
                        held.add(message);
                    }
                    while (held.size() > (message == null ? 0 : behind)) {
                        var oldest = held.poll();
                        log.note(consumer.getConsumerName(), "acknowledged", oldest);
                        consumer.acknowledgeAsync(oldest);
                    }
                }
            } catch (Exception failure) {
                // What it should have received will be missing.
                failure.printStackTrace();
            }
        }

        void leave() throws Exception {
            leaving = true;
            join();
            log.left(consumer.getConsumerName());
            consumer.close();
        }
    }

    /** Publishes between joins and leaves, which follow from the seed, and tells what the consumers saw. */
    private static void churn(Context context) throws Exception {
        var random = new Random(context.number("seed"));
        var log = new Log();
        var members = new ArrayList<Member>();
        int joined = 0;
        while (joined < START) {
            members.add(join(context, log, "c" + joined++, random));
        }
        int messages = context.number("messages");
        int steps = context.number("steps");
        int sent = 0;
        try (var producer = producer(context, context.flag("batched"))) {
            for (int step = 0; step < steps; step++) {
                for (int end = messages * (step + 1) / steps; sent < end; sent++) {
                    var key = "key-" + random.nextInt(KEYS);
                    producer.newMessage().key(key).value(Check.bytes("" + sent)).sendAsync();
                }
                producer.flush();
                await(log, sent - BEHIND);
                if (members.size() == 1 || members.size() < MOST && random.nextBoolean()) {
                    members.add(join(context, log, "c" + joined++, random));
                } else {
                    members.remove(random.nextInt(members.size())).leave();
                }
            }
            await(log, messages);
        }
        eventually(() -> context.stats(context.topic()).contains("\"msgBacklog\":0,"), "everything acknowledged");
        for (var member : members) {
            member.leave();
        }
        context.told().add("events", log.told());
    }

    private static void await(Log log, int count) throws Exception {
        eventually(() -> log.received() >= count, count + " messages at the consumers");
    }

    private static Member join(Context context, Log log, String name, Random random) throws Exception {
        var consumer = context.consumer(SubscriptionType.Key_Shared).consumerName(name).receiverQueueSize(50)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        return new Member(consumer, log, random.nextInt(5));
    }
}
