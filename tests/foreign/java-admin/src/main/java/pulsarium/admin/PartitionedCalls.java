package pulsarium.admin;

import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.client.admin.GetStatsOptions;
import org.apache.pulsar.client.admin.ListTopicsOptions;
import org.apache.pulsar.client.api.MessageId;

/** Partitioned topics, and what cannot be asked of them as a whole. */
final class PartitionedCalls {
    private static final String NAMESPACE = "public/java-partitioned";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/p";

    private PartitionedCalls() {
    }

    static void run(Context context) throws Exception {
        var topics = context.topics;
        context.namespaces.createNamespace(NAMESPACE);
        topics.createPartitionedTopic(TOPIC, 2);
        topics.createPartitionedTopic("persistent://" + NAMESPACE + "/with", 1, Map.of("a", "b"));
        context.fails(409, () -> topics.createPartitionedTopic(TOPIC, 2));
        topics.getPartitionedTopicList(NAMESPACE);
        topics.getPartitionedTopicList(NAMESPACE, ListTopicsOptions.builder().includeSystemTopic(true).build());
        context.equal(topics.getPartitionedTopicMetadata(TOPIC).partitions, 2, "partitions");
        topics.getPartitionedTopicMetadata("persistent://" + NAMESPACE + "/with");
        context.fails(404, () -> topics.getPartitionedTopicMetadata("persistent://" + NAMESPACE + "/missing"));
        topics.updatePartitionedTopic(TOPIC, 3);
        topics.updatePartitionedTopic(TOPIC, 3, true);
        topics.updatePartitionedTopic(TOPIC, 3, true, true);
        context.fails(422, () -> topics.updatePartitionedTopic(TOPIC, 2));
        context.equal(topics.getPartitionedTopicMetadata(TOPIC).partitions, 3, "partitions");
        topics.createMissedPartitions(TOPIC);
        topics.getList(NAMESPACE);
        topics.updateProperties(TOPIC, Map.of("k", "v"));
        topics.getProperties(TOPIC);
        used(context);
        subscriptions(context);
        refusals(context);
        topics.terminatePartitionedTopic(TOPIC);
        context.fails(409, () -> topics.delete(TOPIC));
        topics.deletePartitionedTopic(TOPIC);
        context.fails(404, () -> topics.deletePartitionedTopic(TOPIC));
        topics.deletePartitionedTopic("persistent://" + NAMESPACE + "/with", true);
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }

    private static void used(Context context) throws Exception {
        var topics = context.topics;
        topics.createSubscription(TOPIC, "s", MessageId.earliest);
        try (var producer = context.client.newProducer().topic(TOPIC).producerName("p").enableBatching(false).create()) {
            for (int number = 0; number < 9; number++) {
                producer.newMessage().key("k" + number).value(new byte[10]).send();
            }
            topics.getPartitionedStats(TOPIC, true);
            topics.getPartitionedStats(TOPIC, false, GetStatsOptions.builder().getPreciseBacklog(true)
                    .subscriptionBacklogSize(true).getEarliestTimeInBacklog(true).build());
            topics.getPartitionedInternalStats(TOPIC);
        }
    }

    private static void subscriptions(Context context) throws Exception {
        var topics = context.topics;
        topics.getSubscriptions(TOPIC);
        topics.skipAllMessages(TOPIC, "s");
        context.equal(topics.getPartitionedStats(TOPIC, false).getSubscriptions().get("s").getMsgBacklog(), 0, "backlog");
        topics.resetCursor(TOPIC, "s", 1);
        context.equal(topics.getPartitionedStats(TOPIC, false).getSubscriptions().get("s").getMsgBacklog(), 9, "backlog");
        topics.expireMessages(TOPIC, "s", 3600);
        topics.updateSubscriptionProperties(TOPIC, "s", Map.of("x", "y"));
        topics.getSubscriptionProperties(TOPIC, "s");
        topics.getReplicatedSubscriptionStatus(TOPIC, "s");
        topics.unload(TOPIC);
        topics.triggerCompaction(TOPIC);
        for (int partition = 0; partition < 3; partition++) {
            var name = TOPIC + "-partition-" + partition;
            context.eventually(() -> topics.compactionStatus(name).status.name().equals("SUCCESS"), "compacted");
        }
        topics.truncate(TOPIC);
        topics.trimTopic(TOPIC);
        topics.deleteSubscription(TOPIC, "s");
        topics.getSubscriptions(TOPIC);
    }

    private static void refusals(Context context) throws Exception {
        var topics = context.topics;
        topics.createSubscription(TOPIC, "s", MessageId.earliest);
        context.fails(404, () -> topics.getStats(TOPIC));
        context.fails(404, () -> topics.getInternalStats(TOPIC));
        context.fails(404, () -> topics.getLastMessageId(TOPIC));
        context.fails(404, () -> topics.compactionStatus(TOPIC));
        context.fails(405, () -> topics.terminateTopic(TOPIC));
        context.fails(405, () -> topics.skipMessages(TOPIC, "s", 1));
        context.fails(405, () -> topics.getMessageIdByTimestamp(TOPIC, 1));
        context.failsInside(405, () -> topics.getMessageIdByIndex(TOPIC, 0));
        context.fails(405, () -> topics.getBacklogSizeByMessageId(TOPIC, MessageId.earliest));
        context.fails(405, () -> topics.analyzeSubscriptionBacklog(TOPIC, "s", Optional.empty()));
    }
}
