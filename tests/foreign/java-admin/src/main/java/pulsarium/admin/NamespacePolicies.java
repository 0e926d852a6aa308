package pulsarium.admin;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.common.policies.data.AutoSubscriptionCreationOverride;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.BookieAffinityGroupData;
import org.apache.pulsar.common.policies.data.PublishRate;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.SchemaAutoUpdateCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.SubscribeRate;
import org.apache.pulsar.common.policies.data.SubscriptionAuthMode;

/** Every policy that a namespace has. */
final class NamespacePolicies {
    private static final String NAMESPACE = "public/java-policies";

    private NamespacePolicies() {
    }

    static void run(Context context) throws Exception {
        var namespaces = context.namespaces;
        var cluster = context.cluster();
        namespaces.createNamespace(NAMESPACE);
        var rounds = new Rounds(context, Namespaces.class, namespaces, NAMESPACE);
        numbers(rounds);
        rates(rounds);
        rounds.policy("getDeduplicationStatus", "setDeduplicationStatus", "removeDeduplicationStatus", true);
        rounds.policy("Retention", new RetentionPolicies(10, 20));
        rounds.policy("Persistence", Values.persistence());
        rounds.policy("InactiveTopicPolicies", Values.inactive());
        rounds.policy("getDelayedDelivery", "setDelayedDeliveryMessages", "removeDelayedDeliveryMessages", Values.delayed());
        rounds.policy("AutoTopicCreation", AutoTopicCreationOverride.builder().allowAutoTopicCreation(true)
                .topicType("partitioned").defaultNumPartitions(3).build());
        rounds.policy("AutoSubscriptionCreation",
                AutoSubscriptionCreationOverride.builder().allowAutoSubscriptionCreation(false).build());
        rounds.policy("SubscriptionTypesEnabled", Set.of(SubscriptionType.Shared));
        rounds.policy("AllowedTopicPropertyKeysForMetrics", Set.of("k"));
        rounds.policy("getBacklogQuotaMap", "setBacklogQuota", "removeBacklogQuota", Values.QUOTA, Values.QUOTAS);
        rounds.without("getSchemaCompatibilityStrategy", "setSchemaCompatibilityStrategy",
                SchemaCompatibilityStrategy.FULL, SchemaCompatibilityStrategy.UNDEFINED);
        rounds.without("getSchemaAutoUpdateCompatibilityStrategy", "setSchemaAutoUpdateCompatibilityStrategy",
                SchemaAutoUpdateCompatibilityStrategy.Backward, SchemaAutoUpdateCompatibilityStrategy.Full);
        rounds.without("getIsAllowAutoUpdateSchema", "setIsAllowAutoUpdateSchema", false, true);
        rounds.without("getSchemaValidationEnforced", "setSchemaValidationEnforced", true, false);
        rounds.without("getEncryptionRequiredStatus", "setEncryptionRequiredStatus", true, false);
        rounds.without("getSubscriptionAuthMode", "setSubscriptionAuthMode",
                SubscriptionAuthMode.Prefix, SubscriptionAuthMode.None);
        others(context, cluster);
        namespaces.getPolicies(NAMESPACE);
        refusals(context);
        namespaces.deleteNamespace(NAMESPACE);
    }

    private static void numbers(Rounds rounds) throws Exception {
        for (var name : List.of("NamespaceMessageTTL", "SubscriptionExpirationTime", "DeduplicationSnapshotInterval",
                "MaxSubscriptionsPerTopic", "MaxProducersPerTopic", "MaxConsumersPerTopic", "MaxConsumersPerSubscription",
                "MaxUnackedMessagesPerConsumer", "MaxUnackedMessagesPerSubscription", "MaxTopicsPerNamespace")) {
            rounds.policy(name, 7);
        }
        rounds.policy("CompactionThreshold", 100L);
        rounds.without("getOffloadThreshold", "setOffloadThreshold", 1000L, -1L);
        rounds.without("getOffloadThresholdInSeconds", "setOffloadThresholdInSeconds", 100L, -1L);
    }

    private static void rates(Rounds rounds) throws Exception {
        for (var name : List.of("DispatchRate", "SubscriptionDispatchRate", "ReplicatorDispatchRate")) {
            rounds.policy(name, Values.dispatchRate());
        }
        rounds.policy("PublishRate", new PublishRate(10, 1000));
        rounds.policy("SubscribeRate", new SubscribeRate(5, 30));
    }

    private static void others(Context context, String cluster) throws Exception {
        var namespaces = context.namespaces;
        namespaces.getOffloadDeleteLagMs(NAMESPACE);
        namespaces.setOffloadDeleteLag(NAMESPACE, 5, TimeUnit.SECONDS);
        context.equal(namespaces.getOffloadDeleteLagMs(NAMESPACE), 5000, "deletion lag");
        namespaces.clearOffloadDeleteLag(NAMESPACE);
        namespaces.getOffloadDeleteLagMs(NAMESPACE);
        namespaces.getOffloadPolicies(NAMESPACE);
        namespaces.setOffloadPolicies(NAMESPACE, Values.offload());
        namespaces.getOffloadPolicies(NAMESPACE);
        namespaces.removeOffloadPolicies(NAMESPACE);
        namespaces.getOffloadPolicies(NAMESPACE);
        namespaces.getDispatcherPauseOnAckStatePersistent(NAMESPACE);
        namespaces.setDispatcherPauseOnAckStatePersistent(NAMESPACE);
        Context.that(namespaces.getDispatcherPauseOnAckStatePersistent(NAMESPACE), "set");
        namespaces.removeDispatcherPauseOnAckStatePersistent(NAMESPACE);
        namespaces.getDispatcherPauseOnAckStatePersistent(NAMESPACE);
        namespaces.getNamespaceEntryFilters(NAMESPACE);
        context.fails(400, () -> namespaces.setNamespaceEntryFilters(NAMESPACE, Values.filters()));
        namespaces.removeNamespaceEntryFilters(NAMESPACE);
        properties(context);
        groups(context, cluster);
        namespaces.getNamespaceReplicationClusters(NAMESPACE);
        namespaces.setNamespaceReplicationClusters(NAMESPACE, Set.of(cluster), false);
        namespaces.getNamespaceReplicationClusters(NAMESPACE);
        namespaces.getNamespaceAllowedClusters(NAMESPACE);
        namespaces.setNamespaceAllowedClusters(NAMESPACE, Set.of(cluster));
        namespaces.getNamespaceAllowedClusters(NAMESPACE);
        namespaces.updateMigrationState(NAMESPACE, false);
    }

    private static void properties(Context context) throws Exception {
        var namespaces = context.namespaces;
        namespaces.getProperties(NAMESPACE);
        namespaces.setProperty(NAMESPACE, "a", "b");
        namespaces.setProperties(NAMESPACE, Map.of("c", "d", "e", "f"));
        context.equal(namespaces.getProperty(NAMESPACE, "a"), "b", "property");
        context.equal(namespaces.getProperties(NAMESPACE), Map.of("a", "b", "c", "d", "e", "f"), "properties");
        namespaces.removeProperty(NAMESPACE, "a");
        namespaces.getProperty(NAMESPACE, "a");
        namespaces.getProperties(NAMESPACE);
        namespaces.clearProperties(NAMESPACE);
        namespaces.getProperties(NAMESPACE);
    }

    private static void groups(Context context, String cluster) throws Exception {
        var namespaces = context.namespaces;
        namespaces.getNamespaceAntiAffinityGroup(NAMESPACE);
        namespaces.setNamespaceAntiAffinityGroup(NAMESPACE, "java-group");
        namespaces.getNamespaceAntiAffinityGroup(NAMESPACE);
        namespaces.getAntiAffinityNamespaces("public", cluster, "java-group");
        namespaces.deleteNamespaceAntiAffinityGroup(NAMESPACE);
        namespaces.getNamespaceAntiAffinityGroup(NAMESPACE);
        namespaces.getBookieAffinityGroup(NAMESPACE);
        namespaces.setBookieAffinityGroup(NAMESPACE, BookieAffinityGroupData.builder()
                .bookkeeperAffinityGroupPrimary("p").bookkeeperAffinityGroupSecondary("s").build());
        namespaces.getBookieAffinityGroup(NAMESPACE);
        namespaces.deleteBookieAffinityGroup(NAMESPACE);
        var group = new org.apache.pulsar.common.policies.data.ResourceGroup();
        context.resourceGroups.createResourceGroup("java-rg", group);
        namespaces.getNamespaceResourceGroup(NAMESPACE);
        namespaces.setNamespaceResourceGroup(NAMESPACE, "java-rg");
        namespaces.getNamespaceResourceGroup(NAMESPACE);
        namespaces.removeNamespaceResourceGroup(NAMESPACE);
        namespaces.getNamespaceResourceGroup(NAMESPACE);
        context.resourceGroups.deleteResourceGroup("java-rg");
    }

    private static void refusals(Context context) throws Exception {
        var namespaces = context.namespaces;
        context.fails(412, () -> namespaces.setNamespaceMessageTTL(NAMESPACE, -1));
        context.fails(412, () -> namespaces.setMaxProducersPerTopic(NAMESPACE, -1));
        context.fails(400, () -> namespaces.setPersistence(NAMESPACE, Values.persistence(1, 2, 3)));
        namespaces.setRetention(NAMESPACE, new RetentionPolicies(10, 10));
        context.fails(412, () -> namespaces.setBacklogQuota(NAMESPACE, BacklogQuota.builder().limitSize(1L << 30)
                        .retentionPolicy(BacklogQuota.RetentionPolicy.producer_exception).build()));
        namespaces.removeRetention(NAMESPACE);
        context.fails(404, () -> namespaces.setRetention("public/java-missing", new RetentionPolicies(10, 10)));
    }
}
