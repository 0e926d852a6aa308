package pulsarium.admin;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyData;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyType;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.ClusterPolicies.ClusterUrl;
import org.apache.pulsar.common.policies.data.FailureDomain;
import org.apache.pulsar.common.policies.data.NamespaceIsolationData;

/** Clusters and what hangs on them. */
final class ClusterCalls {
    private ClusterCalls() {
    }

    static void run(Context context) throws Exception {
        var clusters = context.clusters;
        clusters.getClusters();
        var data = ClusterData.builder().serviceUrl("http://example.com:8080").brokerServiceUrl("pulsar://example.com:6650");
        clusters.createCluster("java-cluster", data.build());
        context.fails(409, () -> clusters.createCluster("java-cluster", data.build()));
        clusters.getCluster("java-cluster");
        context.fails(404, () -> clusters.getCluster("java-missing"));
        context.fails(412, () -> clusters.createCluster("java cluster", data.build()));
        clusters.updateCluster("java-cluster", data.serviceUrlTls("https://example.com:8443").build());
        clusters.getCluster("java-cluster");
        clusters.getClusters();

        clusters.getPeerClusterNames("java-cluster");
        var own = context.cluster();
        clusters.updatePeerClusterNames("java-cluster", new LinkedHashSet<>(List.of(own)));
        clusters.getPeerClusterNames("java-cluster");
        context.fails(412,
                () -> clusters.updatePeerClusterNames("java-cluster", new LinkedHashSet<>(List.of("java-cluster"))));
        clusters.updatePeerClusterNames("java-cluster", null);
        clusters.getPeerClusterNames("java-cluster");

        context.fails(404, () -> clusters.getClusterMigration("java-cluster"));
        clusters.updateClusterMigration("java-cluster", true,
                new ClusterUrl("http://other.com:8080", "", "pulsar://other.com:6650", ""));
        clusters.getClusterMigration("java-cluster");
        clusters.updateClusterMigration("java-cluster", false, new ClusterUrl());

        failureDomains(context);
        isolation(context, own);
        clusters.deleteCluster("java-cluster");
        context.fails(404, () -> clusters.deleteCluster("java-cluster"));
    }

    private static void failureDomains(Context context) throws Exception {
        var clusters = context.clusters;
        clusters.getFailureDomains("java-cluster");
        clusters.createFailureDomain("java-cluster", "d1", FailureDomain.builder().brokers(Set.of("b1:8080")).build());
        clusters.getFailureDomain("java-cluster", "d1");
        clusters.updateFailureDomain("java-cluster", "d1", FailureDomain.builder().brokers(Set.of("b2:8080")).build());
        clusters.getFailureDomains("java-cluster");
        clusters.deleteFailureDomain("java-cluster", "d1");
        context.fails(404, () -> clusters.getFailureDomain("java-cluster", "d1"));
    }

    private static void isolation(Context context, String own) throws Exception {
        var clusters = context.clusters;
        var failover = AutoFailoverPolicyData.builder().policyType(AutoFailoverPolicyType.min_available)
                .parameters(Map.of("min_limit", "1", "usage_threshold", "80")).build();
        var policy = NamespaceIsolationData.builder().namespaces(List.of("java-nowhere/.*")).primary(List.of("no-broker.*"))
                .secondary(List.of("other.*")).autoFailoverPolicy(failover);
        context.fails(404, () -> clusters.getNamespaceIsolationPolicies("java-missing"));
        clusters.createNamespaceIsolationPolicy(own, "java-policy", policy.build());
        clusters.getNamespaceIsolationPolicy(own, "java-policy");
        clusters.updateNamespaceIsolationPolicy(own, "java-policy", policy.primary(List.of("none.*")).build());
        clusters.getNamespaceIsolationPolicies(own);
        clusters.getBrokersWithNamespaceIsolationPolicy(own);
        var broker = context.quietly(() -> context.brokers.getActiveBrokers()).get(0);
        clusters.getBrokerWithNamespaceIsolationPolicy(own, broker);
        clusters.deleteNamespaceIsolationPolicy(own, "java-policy");
        context.fails(404, () -> clusters.getNamespaceIsolationPolicy(own, "java-policy"));
    }
}
