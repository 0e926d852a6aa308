package pulsarium.admin;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.client.admin.GrantTopicPermissionOptions;
import org.apache.pulsar.client.admin.ListNamespaceTopicsOptions;
import org.apache.pulsar.client.admin.Mode;
import org.apache.pulsar.client.admin.RevokeTopicPermissionOptions;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.policies.data.AuthAction;
import org.apache.pulsar.common.policies.data.BundlesData;
import org.apache.pulsar.common.policies.data.Policies;

/** Namespaces: themselves, who may use them, and what is done to all topics in one. */
final class NamespaceCalls {
    private static final String NAMESPACE = "public/java-ns";

    private NamespaceCalls() {
    }

    static void run(Context context) throws Exception {
        var namespaces = context.namespaces;
        var cluster = context.cluster();
        namespaces.createNamespace(NAMESPACE);
        context.fails(409, () -> namespaces.createNamespace(NAMESPACE));
        context.fails(404, () -> namespaces.createNamespace("java-missing/ns"));
        namespaces.createNamespace("public/java-ns-8", 8);
        namespaces.createNamespace("public/java-ns-clusters", Set.of(cluster));
        namespaces.createNamespace("public/java-ns-bundles", BundlesData.builder().numBundles(2).build());
        var policies = new Policies();
        policies.message_ttl_in_seconds = 77;
        namespaces.createNamespace("public/java-ns-policies", policies);
        namespaces.getNamespaceMessageTTL("public/java-ns-policies");
        namespaces.getNamespaces("public");
        context.fails(404, () -> namespaces.getNamespaces("java-missing"));
        namespaces.getPolicies(NAMESPACE);
        context.fails(404, () -> namespaces.getPolicies("public/java-missing"));
        // No broker since 2.0 has its route.
        context.fails(405, () -> namespaces.getReplicationConfigVersion(NAMESPACE));
        topics(context);
        permissions(context);
        for (var other : List.of("8", "clusters", "bundles", "policies")) {
            namespaces.deleteNamespace("public/java-ns-" + other);
        }
        context.fails(404, () -> namespaces.deleteNamespace("public/java-ns-8"));
        context.fails(409, () -> namespaces.deleteNamespace(NAMESPACE));
        namespaces.deleteNamespace(NAMESPACE, true);
    }

    private static void topics(Context context) throws Exception {
        var namespaces = context.namespaces;
        namespaces.getTopics(NAMESPACE);
        context.topics.createNonPartitionedTopic("persistent://" + NAMESPACE + "/t");
        context.topics.createPartitionedTopic("persistent://" + NAMESPACE + "/p", 2);
        namespaces.getTopics(NAMESPACE);
        namespaces.getTopics(NAMESPACE, ListNamespaceTopicsOptions.builder().mode(Mode.NON_PERSISTENT).build());
        namespaces.getTopics(NAMESPACE, ListNamespaceTopicsOptions.builder().mode(Mode.ALL).includeSystemTopic(false).build());
        backlog(context);
        namespaces.unload(NAMESPACE);
        context.fails(404, () -> namespaces.unload("public/java-missing"));
    }

    private static void backlog(Context context) throws Exception {
        var namespaces = context.namespaces;
        var topic = "persistent://" + NAMESPACE + "/t";
        for (var name : List.of("s1", "s2")) {
            context.topics.createSubscription(topic, name, MessageId.earliest);
            context.topics.createSubscription("persistent://" + NAMESPACE + "/p", name, MessageId.earliest);
        }
        try (var producer = context.client.newProducer().topic(topic).enableBatching(false).create()) {
            for (int number = 0; number < 3; number++) {
                producer.send(new byte[10]);
            }
            namespaces.clearNamespaceBacklogForSubscription(NAMESPACE, "s1");
            backlogs(context, topic, 0, 3);
            namespaces.clearNamespaceBacklog(NAMESPACE);
            backlogs(context, topic, 0, 0);
            producer.send(new byte[10]);
            var bundle = context.lookups.getBundleRange(topic);
            namespaces.clearNamespaceBundleBacklogForSubscription(NAMESPACE, bundle, "s2");
            backlogs(context, topic, 1, 0);
            namespaces.clearNamespaceBundleBacklog(NAMESPACE, bundle);
            backlogs(context, topic, 0, 0);
            namespaces.unsubscribeNamespaceBundle(NAMESPACE, bundle, "s1");
            context.topics.getSubscriptions(topic);
            namespaces.unsubscribeNamespace(NAMESPACE, "s2");
            context.topics.getSubscriptions(topic);
        }
    }

    private static void backlogs(Context context, String topic, long first, long second) throws Exception {
        var subscriptions = context.quietly(() -> context.topics.getStats(topic)).getSubscriptions();
        context.equal(List.of(subscriptions.get("s1").getMsgBacklog(), subscriptions.get("s2").getMsgBacklog()),
                List.of(first, second), "backlogs");
    }

    private static void permissions(Context context) throws Exception {
        var namespaces = context.namespaces;
        namespaces.getPermissions(NAMESPACE);
        namespaces.grantPermissionOnNamespace(NAMESPACE, "r1", Set.of(AuthAction.consume));
        context.equal(namespaces.getPermissions(NAMESPACE), Map.of("r1", Set.of(AuthAction.consume)), "grants");
        namespaces.revokePermissionsOnNamespace(NAMESPACE, "r1");
        namespaces.getPermissions(NAMESPACE);
        namespaces.grantPermissionOnSubscription(NAMESPACE, "s", Set.of("r2"));
        namespaces.getPermissionOnSubscription(NAMESPACE);
        namespaces.revokePermissionOnSubscription(NAMESPACE, "s", "r2");
        namespaces.getPermissionOnSubscription(NAMESPACE);
        var topic = "persistent://" + NAMESPACE + "/t";
        namespaces.grantPermissionOnTopics(List.of(GrantTopicPermissionOptions.builder().topic(topic).role("r3")
                .actions(Set.of(AuthAction.produce)).build()));
        context.topics.getPermissions(topic);
        namespaces.revokePermissionOnTopics(List.of(RevokeTopicPermissionOptions.builder().topic(topic).role("r3").build()));
        context.topics.getPermissions(topic);
        context.topics.grantPermission(topic, "r4", Set.of(AuthAction.produce));
        context.topics.getPermissions(topic);
        context.topics.revokePermissions(topic, "r4");
        context.topics.getPermissions(topic);
        context.fails(404, () -> namespaces.getPermissions("public/java-missing"));
    }
}
