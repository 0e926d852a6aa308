package pulsarium.v5;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.CheckpointConsumer;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.Transaction;
import org.apache.pulsar.client.api.v5.config.*;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** What an application does with scalable topics, by the official V5 client. */
final class Cases {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Duration SHORT = Duration.ofMillis(200);

    private final PulsarAdmin admin;
    private final PulsarClient client;
    private final String namespace = "public/v5";

    interface Case {
        void run() throws Exception;
    }

    Cases(String serviceUrl, String adminUrl) throws Exception {
        admin = PulsarAdmin.builder().serviceHttpUrl(adminUrl).build();
        admin.namespaces().createNamespace(namespace);
        client = PulsarClient.builder()
                .serviceUrl(serviceUrl)
                .operationTimeout(PATIENCE)
                .transactionPolicy(TransactionPolicy.builder().timeout(Duration.ofSeconds(60)).build())
                .build();
    }

    Map<String, Case> all() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("a stream", this::stream);
        cases.put("a queue", this::queue);
        cases.put("a checkpoint", this::checkpoint);
        cases.put("a group of checkpoint consumers", this::checkpointGroup);
        cases.put("a split under a stream", this::splitUnderStream);
        cases.put("a split and a merge under a queue", this::splitAndMergeUnderQueue);
        cases.put("two stream consumers", this::twoStreamConsumers);
        cases.put("a stream consumer that comes back", this::rejoin);
        cases.put("a stream consumer of a namespace", this::namespaceStream);
        cases.put("a transaction that commits", this::commit);
        cases.put("a transaction that aborts", this::abort);
        cases.put("a persistent topic", this::persistentTopic);
        cases.put("a migration under a queue", this::migration);
        cases.put("an absent topic", this::absentTopic);
        cases.put("stats and deletion", this::statsAndDeletion);
        return cases;
    }

    private void stream() throws Exception {
        String topic = create("stream", 2);
        try (Producer<String> producer = producer(topic); StreamConsumer<String> consumer = streamOf(topic, "c1")) {
            send(producer, 0, 30);
            Map<String, Integer> last = new HashMap<>();
            Set<String> got = new TreeSet<>();
            MessageId id = null;
            for (int i = 0; i < 30; i++) {
                Message<String> message = consumer.receive(PATIENCE);
                int number = Integer.parseInt(message.properties().get("i"));
                Integer before = last.put(message.key().get(), number);
                check(before == null || before < number, "order of key " + message.key().get());
                got.add(message.value());
                id = message.id();
            }
            equal(values(0, 30), got);
            consumer.acknowledgeCumulative(id);
        }
        Thread.sleep(500);
        try (StreamConsumer<String> consumer = streamOf(topic, "c1")) {
            equal(null, consumer.receive(Duration.ofSeconds(2)));
        }
    }

    private void queue() throws Exception {
        String topic = create("queue", 2);
        try (Producer<String> producer = producer(topic);
                QueueConsumer<String> one = queueOf(topic);
                QueueConsumer<String> other = queueOf(topic)) {
            send(producer, 0, 40);
            Set<String> got = new TreeSet<>();
            long end = System.nanoTime() + PATIENCE.toNanos();
            while (got.size() < 40 && System.nanoTime() < end) {
                for (QueueConsumer<String> each : List.of(one, other)) {
                    Message<String> message = each.receive(SHORT);
                    if (message != null) {
                        got.add(message.value());
                        each.acknowledge(message.id());
                    }
                }
            }
            equal(values(0, 40), got);
        }
    }

    private void checkpoint() throws Exception {
        String topic = create("checkpoint", 2);
        Checkpoint reached;
        try (Producer<String> producer = producer(topic);
                CheckpointConsumer<String> consumer = client.newCheckpointConsumer(Schema.string())
                        .topic(topic).startPosition(Checkpoint.earliest()).create()) {
            send(producer, 0, 20);
            equal(values(0, 20), received(consumer, 20));
            reached = Checkpoint.fromByteArray(consumer.checkpoint().toByteArray());
            send(producer, 20, 5);
        }
        try (CheckpointConsumer<String> consumer =
                client.newCheckpointConsumer(Schema.string()).topic(topic).startPosition(reached).create()) {
            equal(values(20, 5), received(consumer, 5));
        }
    }

    private void checkpointGroup() throws Exception {
        String topic = create("group", 2);
        try (Producer<String> producer = producer(topic);
                CheckpointConsumer<String> consumer = client.newCheckpointConsumer(Schema.string())
                        .topic(topic).consumerGroup("g").consumerName("c1").startPosition(Checkpoint.earliest())
                        .create()) {
            send(producer, 0, 10);
            equal(values(0, 10), received(consumer, 10));
        }
    }

    private void splitUnderStream() throws Exception {
        String topic = create("split", 1);
        try (Producer<String> producer = producer(topic); StreamConsumer<String> consumer = streamOf(topic, "c1")) {
            send(producer, 0, 10);
            admin.scalableTopics().splitSegment(topic, 0);
            send(producer, 10, 10);
            Set<String> got = new TreeSet<>();
            for (int i = 0; i < 20; i++) {
                Message<String> message = consumer.receive(PATIENCE);
                check(message != null, "only " + got);
                got.add(message.value());
                consumer.acknowledgeCumulative(message.id());
            }
            equal(values(0, 20), got);
        }
    }

    private void splitAndMergeUnderQueue() throws Exception {
        String topic = create("merge", 2);
        try (Producer<String> producer = producer(topic); QueueConsumer<String> consumer = queueOf(topic)) {
            send(producer, 0, 10);
            admin.scalableTopics().splitSegment(topic, 0);
            send(producer, 10, 10);
            admin.scalableTopics().mergeSegments(topic, 3, 1);
            send(producer, 20, 10);
            equal(values(0, 30), acknowledged(consumer, 30));
        }
    }

    private void twoStreamConsumers() throws Exception {
        String topic = create("two", 4);
        try (Producer<String> producer = producer(topic);
                StreamConsumer<String> one = streamOf(topic, "c1");
                StreamConsumer<String> other = streamOf(topic, "c2")) {
            for (int i = 0; i < 60; i++) {
                producer.newMessage().key("key" + i).value("m" + i).send();
            }
            Set<String> got = new TreeSet<>();
            Set<StreamConsumer<String>> used = new java.util.HashSet<>();
            long end = System.nanoTime() + PATIENCE.toNanos();
            // The second one may get its segments, and what is not acknowledged in them, after the first got all.
            while ((got.size() < 60 || used.size() < 2) && System.nanoTime() < end) {
                for (StreamConsumer<String> each : List.of(one, other)) {
                    Message<String> message = each.receive(SHORT);
                    if (message != null) {
                        got.add(message.value());
                        used.add(each);
                    }
                }
            }
            equal(values(0, 60), got);
            equal(2, used.size());
        }
    }

    private void rejoin() throws Exception {
        String topic = create("rejoin", 2);
        try (Producer<String> producer = producer(topic)) {
            send(producer, 0, 6);
            try (StreamConsumer<String> consumer = streamOf(topic, "c1")) {
                Message<String> message = null;
                for (int i = 0; i < 6; i++) {
                    message = consumer.receive(PATIENCE);
                }
                consumer.acknowledgeCumulative(message.id());
            }
            send(producer, 6, 6);
            try (StreamConsumer<String> consumer = streamOf(topic, "c1")) {
                Set<String> got = new TreeSet<>();
                for (int i = 0; i < 6; i++) {
                    got.add(consumer.receive(PATIENCE).value());
                }
                equal(values(6, 6), got);
            }
        }
    }

    private void namespaceStream() throws Exception {
        String watched = namespace + "-watched";
        admin.namespaces().createNamespace(watched);
        Map<String, String> team = Map.of("team", "x");
        admin.scalableTopics().createScalableTopic("topic://" + watched + "/a", 1, team);
        try (StreamConsumer<String> consumer = client.newStreamConsumer(Schema.string())
                .namespace(watched, team).subscriptionName("s").consumerName("c1")
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe()) {
            sendAndReceive("topic://" + watched + "/a", consumer);
            admin.scalableTopics().createScalableTopic("topic://" + watched + "/b", 1, team);
            sendAndReceive("topic://" + watched + "/b", consumer);
        }
    }

    private void sendAndReceive(String topic, StreamConsumer<String> consumer) throws Exception {
        try (Producer<String> producer = producer(topic)) {
            send(producer, 0, 3);
        }
        for (int i = 0; i < 3; i++) {
            check(consumer.receive(PATIENCE) != null, "message " + i + " of " + topic);
        }
    }

    private void commit() throws Exception {
        String topic = create("commit", 2);
        try (Producer<String> producer = producer(topic); QueueConsumer<String> consumer = queueOf(topic)) {
            Transaction transaction = client.newTransaction();
            for (int i = 0; i < 4; i++) {
                producer.newMessage().key("key" + i).value("m" + i).transaction(transaction).send();
            }
            equal(null, consumer.receive(Duration.ofSeconds(1)));
            transaction.commit();
            equal(values(0, 4), acknowledged(consumer, 4));
        }
    }

    private void abort() throws Exception {
        String topic = create("abort", 1);
        try (Producer<String> producer = producer(topic); QueueConsumer<String> consumer = queueOf(topic)) {
            producer.newMessage().value("m0").send();
            Message<String> message = consumer.receive(PATIENCE);
            Transaction transaction = client.newTransaction();
            consumer.acknowledge(message.id(), transaction);
            producer.newMessage().value("lost").transaction(transaction).send();
            transaction.abort();
            producer.newMessage().value("m1").send();
            Set<String> got = new TreeSet<>();
            while ((message = consumer.receive(got.contains("m1") ? Duration.ofSeconds(1) : PATIENCE)) != null) {
                got.add(message.value());
            }
            check(!got.contains("lost") && got.contains("m1"), "got " + got);
        }
    }

    private void persistentTopic() throws Exception {
        String topic = "persistent://" + namespace + "/legacy";
        admin.topics().createPartitionedTopic(topic, 3);
        try (Producer<String> producer = producer(topic); QueueConsumer<String> consumer = queueOf(topic)) {
            send(producer, 0, 12);
            equal(values(0, 12), acknowledged(consumer, 12));
        }
    }

    private void migration() throws Exception {
        String legacy = "persistent://" + namespace + "/migrated";
        admin.topics().createPartitionedTopic(legacy, 2);
        try (Producer<String> producer = producer(legacy); QueueConsumer<String> consumer = queueOf(legacy)) {
            send(producer, 0, 10);
            admin.scalableTopics().migrateToScalable("topic://" + namespace + "/migrated", false);
            send(producer, 10, 10);
            equal(values(0, 20), acknowledged(consumer, 20));
        }
    }

    private void absentTopic() throws Exception {
        try (Producer<String> producer = producer("topic://" + namespace + "/absent")) {
            producer.newMessage().value("x").send();
        }
    }

    private void statsAndDeletion() throws Exception {
        String topic = create("deleted", 3);
        equal(3, admin.scalableTopics().getStats(topic).getLayout().getSegments().size());
        equal(3, admin.scalableTopics().getMetadata(topic).getSegments().size());
        check(admin.scalableTopics().listScalableTopics(namespace).contains(topic), "not listed");
        admin.scalableTopics().deleteScalableTopic(topic);
        check(!admin.scalableTopics().listScalableTopics(namespace).contains(topic), "still listed");
    }

    // steps

    private String create(String name, int segments) throws Exception {
        String topic = "topic://" + namespace + "/" + name;
        admin.scalableTopics().createScalableTopic(topic, segments);
        return topic;
    }

    private Producer<String> producer(String topic) throws Exception {
        return client.newProducer(Schema.string()).topic(topic).create();
    }

    private StreamConsumer<String> streamOf(String topic, String name) throws Exception {
        return client.newStreamConsumer(Schema.string()).topic(topic).subscriptionName("s").consumerName(name)
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
    }

    private QueueConsumer<String> queueOf(String topic) throws Exception {
        return client.newQueueConsumer(Schema.string()).topic(topic).subscriptionName("q")
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
    }

    private static void send(Producer<String> producer, int first, int count) throws Exception {
        for (int i = first; i < first + count; i++) {
            producer.newMessage().key("k" + i % 7).value("m" + i).property("i", "" + i).send();
        }
    }

    private static Set<String> received(CheckpointConsumer<String> consumer, int count) throws Exception {
        Set<String> got = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            Message<String> message = consumer.receive(PATIENCE);
            check(message != null, "only " + got);
            got.add(message.value());
        }
        return got;
    }

    private static Set<String> acknowledged(QueueConsumer<String> consumer, int count) throws Exception {
        Set<String> got = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            Message<String> message = consumer.receive(PATIENCE);
            check(message != null, "only " + got);
            got.add(message.value());
            consumer.acknowledge(message.id());
        }
        return got;
    }

    private static Set<String> values(int first, int count) {
        Set<String> values = new TreeSet<>();
        for (int i = first; i < first + count; i++) {
            values.add("m" + i);
        }
        return values;
    }

    private static void equal(Object expected, Object got) {
        check(Objects.equals(expected, got), "expected " + expected + ", got " + got);
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
