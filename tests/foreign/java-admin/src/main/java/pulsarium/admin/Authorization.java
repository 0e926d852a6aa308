package pulsarium.admin;

import java.util.List;
import java.util.Set;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.policies.data.AuthAction;

/** What a role without grants may not do, and what it may with them. */
final class Authorization {
    private static final String TOPIC = "persistent://public/java-secured/t";

    private Authorization() {
    }

    static void run(Context admin, PulsarAdmin other, PulsarAdmin nobody) throws Exception {
        admin.namespaces.createNamespace("public/java-secured");
        admin.topics.createNonPartitionedTopic(TOPIC);
        try (var producer = admin.client.newProducer().topic(TOPIC).create()) {
            producer.send(new byte[10]);
        }
        var user = admin.as(other);
        for (var call : List.<Context.Call>of(
                () -> user.topics.getLastMessageId(TOPIC), () -> user.topics.getStats(TOPIC),
                () -> user.topics.getList("public/java-secured"), () -> user.topics.delete(TOPIC),
                () -> user.topics.unload(TOPIC), () -> user.tenants.getTenants(),
                () -> user.namespaces.getNamespaceMessageTTL("public/java-secured"),
                () -> user.namespaces.createNamespace("public/java-other"),
                () -> user.brokers.getRuntimeConfigurations(), () -> user.clusters.deleteCluster("java-missing"))) {
            refused(admin, call);
        }
        var stranger = admin.as(nobody);
        admin.fails(401, () -> stranger.topics.getStats(TOPIC));
        admin.failsInside(401, () -> stranger.topics.getMessageIdByIndex(TOPIC, 0));
        admin.failsInside(401, () -> user.topics.getMessageIdByIndex(TOPIC, 0));
        admin.namespaces.grantPermissionOnNamespace("public/java-secured", "user", Set.of(AuthAction.consume));
        user.topics.getStats(TOPIC);
        user.topics.getMessageIdByIndex(TOPIC, 0);
        refused(admin, () -> user.topics.delete(TOPIC));
        refused(admin, () -> user.topics.grantPermission(TOPIC, "user", Set.of(AuthAction.produce)));
        admin.namespaces.deleteNamespace("public/java-secured", true);
    }

    /** 401 or 403, as the broker's own code has it for each operation. */
    private static void refused(Context context, Context.Call call) throws Exception {
        try {
            call.run();
        } catch (PulsarAdminException.NotAuthorizedException error) {
            Context.that(Set.of(401, 403).contains(error.getStatusCode()), "status " + error.getStatusCode());
            return;
        }
        throw new AssertionError("not refused");
    }
}
