package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.RegexSubscriptionMode;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Partitioned topics, several topics at once, topics that vanish and topics that keep nothing. */
final class Topics {
    private Topics() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("keys", Topics::keys);
        all.put("grow", Topics::grow);
        all.put("several", Topics::several);
        all.put("pattern", Topics::pattern);
        all.put("pattern-new-topics", Topics::newTopics);
        all.put("non-persistent", Topics::nonPersistent);
        all.put("partitions", Topics::partitions);
    }

    private static void partitions(Context context) throws Exception {
        context.createPartitioned(context.topic(), 4);
        var names = new ArrayList<String>();
        for (int number = 0; number < 4; number++) {
            names.add(context.topic() + "-partition-" + number);
        }
        equal(get(context.client().getPartitionsForTopic(context.topic(), false)), names);
        try (var one = context.consumer(SubscriptionType.Failover).consumerName("a").subscribe();
                var two = context.consumer(SubscriptionType.Failover).consumerName("b").subscribe();
                var producer = context.newProducer()) {
            send(producer, texts("a", 0, 40));
            var first = new HashSet<>(receive(one, 20).stream().map(Message::getTopicName).toList());
            var second = new HashSet<>(receive(two, 20).stream().map(Message::getTopicName).toList());
            equal(List.of(first.size(), second.size()), List.of(2, 2), "partitions of each");
            that(first.stream().noneMatch(second::contains), "a partition went to both");
        }
    }

    private static void keys(Context context) throws Exception {
        context.createPartitioned(context.topic(), 3);
        try (var consumer = context.newConsumer(SubscriptionType.Failover);
                var producer = context.producer().enableBatching(true).create()) {
            for (int number = 0; number < 300; number++) {
                producer.newMessage().key("key-" + number % 10).value(Check.bytes("" + number)).sendAsync();
            }
            producer.flush();
            var numbers = new TreeMap<String, List<Integer>>();
            var places = new TreeMap<String, String>();
            for (var message : receive(consumer, 300)) {
                numbers.computeIfAbsent(message.getKey(), key -> new ArrayList<>()).add(Integer.valueOf(Check.text(message)));
                var before = places.put(message.getKey(), message.getTopicName());
                that(before == null || before.equals(message.getTopicName()), message.getKey() + " in two partitions");
            }
            equal(numbers.size(), 10);
            numbers.forEach((key, values) -> equal(values, sorted(values), key));
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
            Check.eventually(() -> {
                send(producer, texts("b", 0, 3));
                receive(consumer, 3).forEach(message -> used.add(message.getTopicName()));
                return used.size() == 3;
            }, "messages through the new partitions");
        }
    }

    private static void several(Context context) throws Exception {
        var topics = List.of(context.topic("a"), context.topic("b"), context.topic("c"));
        context.createPartitioned(topics.get(2), 2);
        var sent = new ArrayList<String>();
        try (var consumer = context.client().newConsumer().topics(topics).subscriptionName("s").subscribe()) {
            for (var topic : topics) {
                try (var producer = context.client().newProducer().topic(topic).create()) {
                    var texts = texts(topic, 0, 10);
                    send(producer, texts);
                    sent.addAll(texts);
                }
            }
            equal(sorted(consume(consumer, 30)), sorted(sent));
            nothingMore(consumer);
        }
    }

    private static void pattern(Context context) throws Exception {
        var base = "persistent://" + context.text("namespace") + "/";
        context.createPartitioned(base + "red-parts", 2);
        for (var name : List.of("red-1", "blue")) {
            context.client().newProducer().topic(base + name).create().close();
        }
        try (var consumer = context.client().newConsumer().topicsPattern(Pattern.compile(base + "red-.*"))
                .subscriptionName("s").subscriptionTopicsMode(RegexSubscriptionMode.PersistentOnly).subscribe()) {
            for (var name : List.of("red-1", "blue", "red-parts")) {
                try (var producer = context.client().newProducer().topic(base + name).create()) {
                    send(producer, List.of(name, name));
                }
            }
            equal(sorted(consume(consumer, 4)), List.of("red-1", "red-1", "red-parts", "red-parts"));
            nothingMore(consumer);
        }
    }

    private static void newTopics(Context context) throws Exception {
        var base = "persistent://" + context.text("namespace") + "/";
        try (var consumer = context.client().newConsumer().topicsPattern(base + "new-.*").subscriptionName("s")
                .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            for (var name : List.of("new-1", "old", "new-2")) {
                try (var producer = context.client().newProducer().topic(base + name).create()) {
                    send(producer, List.of(name));
                }
            }
            equal(sorted(consume(consumer, 2)), List.of("new-1", "new-2"));
            nothingMore(consumer);
        }
    }

    private static void nonPersistent(Context context) throws Exception {
        var topic = context.topic().replace("persistent://", "non-persistent://");
        try (var one = context.client().newConsumer().topic(topic).subscriptionName("one").subscribe();
                var two = context.client().newConsumer().topic(topic).subscriptionName("two")
                        .subscriptionType(SubscriptionType.Shared).subscribe();
                var producer = context.client().newProducer().topic(topic).create()) {
            send(producer, texts("a", 0, 20));
            equal(consume(one, 20), texts("a", 0, 20));
            equal(consume(two, 20), texts("a", 0, 20));
        }
    }
}
