package pulsarium.admin;

import java.util.List;

/** Bundles, and lookups, which tell them. */
final class BundleCalls {
    private static final String NAMESPACE = "public/java-bundles";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/t";

    private BundleCalls() {
    }

    static void run(Context context) throws Exception {
        var namespaces = context.namespaces;
        namespaces.createNamespace(NAMESPACE, 2);
        namespaces.getBundles(NAMESPACE);
        context.topics.createNonPartitionedTopic(TOPIC);
        context.topics.createPartitionedTopic("persistent://" + NAMESPACE + "/p", 2);
        context.lookups.lookupTopic(TOPIC);
        context.lookups.lookupPartitionedTopic("persistent://" + NAMESPACE + "/p");
        var bundle = context.lookups.getBundleRange(TOPIC);
        namespaces.getTopicHashPositions(NAMESPACE, bundle, List.of(TOPIC));
        context.topics.getListInBundle(NAMESPACE, bundle);
        namespaces.unloadNamespaceBundle(NAMESPACE, bundle);
        context.topics.getStats(TOPIC).getSubscriptions();
        namespaces.splitNamespaceBundle(NAMESPACE, bundle, true, null);
        namespaces.getBundles(NAMESPACE);
        context.lookups.getBundleRange(TOPIC);
        context.fails(412, () -> namespaces.splitNamespaceBundle(NAMESPACE, "0x00000000_0x00000001", false, null));
        context.fails(412, () -> namespaces.unloadNamespaceBundle(NAMESPACE, "0x00000000_0x00000001"));
        var other = bundle.startsWith("0x00000000") ? "0x80000000_0xffffffff" : "0x00000000_0x80000000";
        namespaces.splitNamespaceBundle(NAMESPACE, other, false, "specified_positions_divide",
                List.of(other.startsWith("0x8") ? 0x90000000L : 0x10000000L));
        namespaces.getBundles(NAMESPACE);
        var loaded = context.lookups.getBundleRange(TOPIC);
        context.topics.getStats(TOPIC).getSubscriptions();
        context.fails(409, () -> namespaces.deleteNamespaceBundle(NAMESPACE, loaded));
        namespaces.deleteNamespace(NAMESPACE, true);
    }
}
