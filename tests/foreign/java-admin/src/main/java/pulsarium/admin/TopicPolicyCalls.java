package pulsarium.admin;

import java.util.List;
import java.util.Set;
import org.apache.pulsar.client.admin.TopicPolicies;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.common.policies.data.AutoSubscriptionCreationOverride;
import org.apache.pulsar.common.policies.data.PublishRate;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.SubscribeRate;

/** Every policy that a topic has, with the interface made for them and with the older methods of Topics. */
final class TopicPolicyCalls {
    private static final String NAMESPACE = "public/java-topic-policies";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/t";

    private TopicPolicyCalls() {
    }

    static void run(Context context) throws Exception {
        var policies = context.topicPolicies;
        context.namespaces.createNamespace(NAMESPACE);
        context.topics.createNonPartitionedTopic(TOPIC);
        var rounds = new Rounds(context, TopicPolicies.class, policies, TOPIC);
        common(rounds);
        var cluster = context.cluster();
        rounds.policy("SubscriptionExpirationTime", 7);
        rounds.policy("SchemaCompatibilityStrategy", SchemaCompatibilityStrategy.FULL);
        rounds.policy("AutoSubscriptionCreation",
                AutoSubscriptionCreationOverride.builder().allowAutoSubscriptionCreation(false).build());
        others(context, cluster);
        policies.getEntryFiltersPerTopic(TOPIC, true);
        context.fails(400, () -> policies.setEntryFiltersPerTopic(TOPIC, Values.filters()));
        policies.removeEntryFiltersPerTopic(TOPIC);
        refusals(context);
        policies.setMaxProducers(TOPIC, 3);
        policies.deleteTopicPolicies(TOPIC);
        context.eventually(() -> policies.getMaxProducers(TOPIC) == null, "no policies");
        older(context, cluster);
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }

    /** What both interfaces have. */
    private static void common(Rounds rounds) throws Exception {
        for (var name : List.of("MessageTTL", "MaxUnackedMessagesOnConsumer", "MaxUnackedMessagesOnSubscription",
                "MaxConsumersPerSubscription", "MaxProducers", "MaxSubscriptionsPerTopic", "MaxMessageSize", "MaxConsumers",
                "DeduplicationSnapshotInterval")) {
            rounds.policy(name, 7);
        }
        for (var name : List.of("DispatchRate", "SubscriptionDispatchRate", "ReplicatorDispatchRate")) {
            rounds.policy(name, Values.dispatchRate());
        }
        rounds.policy("CompactionThreshold", 100L);
        rounds.policy("PublishRate", new PublishRate(10, 1000));
        rounds.policy("SubscribeRate", new SubscribeRate(5, 30));
        rounds.policy("DeduplicationStatus", true);
        rounds.policy("Retention", new RetentionPolicies(10, 20));
        rounds.policy("Persistence", Values.persistence());
        rounds.policy("InactiveTopicPolicies", Values.inactive());
        rounds.policy("DelayedDeliveryPolicy", Values.delayed());
        rounds.policy("SubscriptionTypesEnabled", Set.of(SubscriptionType.Shared));
        rounds.policy("OffloadPolicies", Values.offload());
        rounds.policy("getBacklogQuotaMap", "setBacklogQuota", "removeBacklogQuota", Values.QUOTA, Values.QUOTAS);
    }

    private static void others(Context context, String cluster) throws Exception {
        var policies = context.topicPolicies;
        policies.getDispatcherPauseOnAckStatePersistent(TOPIC, false).get();
        policies.setDispatcherPauseOnAckStatePersistent(TOPIC).get();
        context.eventually(() -> policies.getDispatcherPauseOnAckStatePersistent(TOPIC, false).get(), "set");
        policies.getDispatcherPauseOnAckStatePersistent(TOPIC, true).get();
        policies.removeDispatcherPauseOnAckStatePersistent(TOPIC).get();
        policies.getReplicationClusters(TOPIC, false);
        policies.setReplicationClusters(TOPIC, List.of(cluster)).get();
        context.eventually(() -> policies.getReplicationClusters(TOPIC, false) != null, "set");
        context.equal(policies.getReplicationClusters(TOPIC, true), Set.of(cluster), "clusters");
        policies.removeReplicationClusters(TOPIC);
        policies.getSubscriptionDispatchRate(TOPIC, "s");
        policies.setSubscriptionDispatchRate(TOPIC, "s", Values.dispatchRate());
        context.eventually(() -> policies.getSubscriptionDispatchRate(TOPIC, "s") != null, "set");
        context.equal(policies.getSubscriptionDispatchRate(TOPIC, "s", true), Values.dispatchRate(), "the rate");
        policies.removeSubscriptionDispatchRate(TOPIC, "s");
        context.eventually(() -> policies.getSubscriptionDispatchRate(TOPIC, "s") == null, "removed");
    }

    private static void refusals(Context context) throws Exception {
        var policies = context.topicPolicies;
        var missing = "persistent://" + NAMESPACE + "/missing";
        context.fails(404, () -> policies.setMaxConsumers(missing, 3));
        context.fails(412, () -> policies.setMaxConsumers(TOPIC, -1));
        context.topics.createPartitionedTopic("persistent://" + NAMESPACE + "/p", 1);
        context.fails(412, () -> policies.setMaxConsumers("persistent://" + NAMESPACE + "/p-partition-0", 3));
    }

    private static void older(Context context, String cluster) throws Exception {
        var topics = context.topics;
        var rounds = new Rounds(context, Topics.class, topics, TOPIC);
        common(rounds);
        rounds.policy("getDeduplicationEnabled", "enableDeduplication", "disableDeduplication", true);
        rounds.without("getSchemaValidationEnforced", "setSchemaValidationEnforced", true, false);
        topics.getReplicationClusters(TOPIC, false);
        topics.setReplicationClusters(TOPIC, List.of(cluster));
        context.eventually(() -> topics.getReplicationClusters(TOPIC, false) != null, "set");
        topics.getReplicationClusters(TOPIC, true);
        topics.removeReplicationClusters(TOPIC);
        topics.getShadowTopics(TOPIC);
        var shadow = "persistent://" + NAMESPACE + "/shadow";
        topics.createShadowTopic(shadow, TOPIC);
        topics.getShadowSource(shadow);
        topics.setShadowTopics(TOPIC, List.of(shadow));
        context.eventually(() -> topics.getShadowTopics(TOPIC) != null, "set");
        topics.getShadowTopics(TOPIC);
        topics.removeShadowTopics(TOPIC);
    }
}
