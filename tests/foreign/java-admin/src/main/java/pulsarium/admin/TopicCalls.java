package pulsarium.admin;

import java.util.Map;
import org.apache.pulsar.client.admin.ListTopicsOptions;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.common.naming.TopicDomain;

/** Topics without partitions: their life and what is told about them. */
final class TopicCalls {
    private static final String NAMESPACE = "public/java-topics";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/t";
    private static final String MISSING = "persistent://" + NAMESPACE + "/missing";

    private TopicCalls() {
    }

    static void run(Context context) throws Exception {
        var topics = context.topics;
        context.namespaces.createNamespace(NAMESPACE);
        topics.createNonPartitionedTopic(TOPIC);
        context.fails(409, () -> topics.createNonPartitionedTopic(TOPIC));
        context.fails(404, () -> topics.createNonPartitionedTopic("persistent://public/java-missing/t"));
        topics.createNonPartitionedTopic("persistent://" + NAMESPACE + "/with", Map.of("a", "b"));
        topics.getProperties("persistent://" + NAMESPACE + "/with");
        topics.getList(NAMESPACE);
        topics.getList(NAMESPACE, TopicDomain.persistent);
        topics.getList(NAMESPACE, TopicDomain.non_persistent);
        topics.getList(NAMESPACE, TopicDomain.persistent, Map.of(Topics.QueryParam.Bundle, "0x00000000_0x40000000"));
        topics.getList(NAMESPACE, TopicDomain.persistent, ListTopicsOptions.builder().includeSystemTopic(true).build());
        context.fails(404, () -> topics.getList("public/java-missing"));
        properties(context);
        told(context);
        compaction(context);
        replicated(context);
        ends(context);
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }

    private static void properties(Context context) throws Exception {
        var topics = context.topics;
        topics.getProperties(TOPIC);
        topics.updateProperties(TOPIC, Map.of("a", "1", "b", "2"));
        topics.getProperties(TOPIC);
        topics.removeProperties(TOPIC, "a");
        topics.getProperties(TOPIC);
        context.fails(404, () -> topics.getProperties(MISSING));
    }

    private static void told(Context context) throws Exception {
        var topics = context.topics;
        try (var producer = context.client.newProducer().topic(TOPIC).producerName("p").enableBatching(false).create();
             var consumer = context.client.newConsumer().topic(TOPIC).subscriptionName("s").consumerName("c")
                     .receiverQueueSize(2).subscribe()) {
            for (int number = 0; number < 5; number++) {
                producer.send(new byte[10]);
            }
            consumer.acknowledge(consumer.receive());
            context.eventually(() -> topics.getStats(TOPIC).getSubscriptions().get("s").getMsgBacklog() == 4, "a backlog of 4");
            topics.getStats(TOPIC);
            topics.getStats(TOPIC, true, true, true);
            topics.getInternalStats(TOPIC);
            topics.getInternalStats(TOPIC, true);
            topics.getInternalInfo(TOPIC);
            context.fails(412, () -> topics.delete(TOPIC));
        }
        context.fails(404, () -> topics.getStats(MISSING));
        context.fails(404, () -> topics.getInternalStats(MISSING));
        context.fails(404, () -> topics.getSubscriptions(MISSING));
        topics.unload(TOPIC);
        topics.getStats(TOPIC);
        context.fails(404, () -> topics.unload(MISSING));
    }

    private static void compaction(Context context) throws Exception {
        var topics = context.topics;
        topics.compactionStatus(TOPIC);
        topics.triggerCompaction(TOPIC);
        context.eventually(() -> topics.compactionStatus(TOPIC).status.name().equals("SUCCESS"), "compacted");
        topics.compactionStatus(TOPIC);
        topics.offloadStatus(TOPIC);
        topics.trimTopic(TOPIC);
        context.fails(404, () -> topics.trimTopic(MISSING));
    }

    private static void replicated(Context context) throws Exception {
        var topics = context.topics;
        topics.getReplicatedSubscriptionStatus(TOPIC, "s");
        topics.setReplicatedSubscriptionStatus(TOPIC, "s", true);
        topics.getReplicatedSubscriptionStatus(TOPIC, "s");
        topics.setReplicatedSubscriptionStatus(TOPIC, "s", false);
    }

    private static void ends(Context context) throws Exception {
        var topics = context.topics;
        topics.getLastMessageId(TOPIC);
        topics.terminateTopic(TOPIC);
        context.fails(404, () -> topics.terminateTopic(MISSING));
        topics.truncate(TOPIC);
        context.equal(context.quietly(() -> topics.getStats(TOPIC)).getSubscriptions().get("s").getMsgBacklog(), 0, "the backlog");
        topics.delete(TOPIC);
        context.fails(404, () -> topics.delete(TOPIC));
        topics.delete("persistent://" + NAMESPACE + "/with", true);
        topics.getList(NAMESPACE);
    }
}
