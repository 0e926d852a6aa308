package pulsarium.admin;

import java.util.Optional;
import org.apache.pulsar.common.policies.data.BookieInfo;
import org.apache.pulsar.common.policies.data.ResourceQuota;

/** Brokers, their statistics, bookies and quotas. */
final class BrokerCalls {
    private BrokerCalls() {
    }

    static void run(Context context) throws Exception {
        var brokers = context.brokers;
        var cluster = context.cluster();
        var broker = brokers.getActiveBrokers().get(0);
        context.equal(brokers.getActiveBrokers(cluster), context.quietly(() -> brokers.getActiveBrokers()), "brokers");
        context.equal(brokers.getLeaderBroker().getBrokerId(), broker, "the only broker leads");
        brokers.getOwnedNamespaces(cluster, broker);
        brokers.getVersion();
        brokers.healthcheck();
        brokers.healthcheck(Optional.empty());
        brokers.backlogQuotaCheck();
        brokers.getInternalConfigurationData();
        brokers.getRuntimeConfigurations();
        brokers.getDynamicConfigurationNames();
        brokers.getAllDynamicConfigurations();
        brokers.updateDynamicConfiguration("maxConcurrentLookupRequest", "49999");
        brokers.getAllDynamicConfigurations();
        context.fails(412, () -> brokers.updateDynamicConfiguration("noSuchKey", "1"));
        brokers.deleteDynamicConfiguration("maxConcurrentLookupRequest");
        brokers.getAllDynamicConfigurations();
        statistics(context);
        bookies(context);
        quotas(context);
    }

    private static void statistics(Context context) throws Exception {
        context.brokerStats.getMetrics();
        context.brokerStats.getMBeans();
        context.brokerStats.getTopics();
        context.brokerStats.getLoadReport();
        context.brokerStats.getPendingBookieOpsStats();
        context.brokerStats.getAllocatorStats("default");
    }

    private static void bookies(Context context) throws Exception {
        var bookies = context.bookies;
        bookies.getBookies();
        bookies.getBookiesRackInfo();
        bookies.updateBookieRackInfo("127.0.0.1:3999", "default",
                BookieInfo.builder().rack("/rack1").hostname("h1").build());
        bookies.getBookieRackInfo("127.0.0.1:3999");
        bookies.getBookiesRackInfo();
        bookies.deleteBookieRackInfo("127.0.0.1:3999");
        context.fails(404, () -> bookies.getBookieRackInfo("127.0.0.1:3999"));
    }

    private static void quotas(Context context) throws Exception {
        var quotas = context.resourceQuotas;
        var before = quotas.getDefaultResourceQuota();
        quotas.setDefaultResourceQuota(quota(41));
        context.equal(quotas.getDefaultResourceQuota(), quota(41), "the default quota");
        quotas.setDefaultResourceQuota(before);
        var bundle = "0x00000000_0x40000000";
        context.namespaces.createNamespace("public/java-quota");
        quotas.getNamespaceBundleResourceQuota("public/java-quota", bundle);
        quotas.setNamespaceBundleResourceQuota("public/java-quota", bundle, quota(42));
        context.equal(quotas.getNamespaceBundleResourceQuota("public/java-quota", bundle), quota(42), "the bundle's quota");
        quotas.resetNamespaceBundleResourceQuota("public/java-quota", bundle);
        context.equal(quotas.getNamespaceBundleResourceQuota("public/java-quota", bundle), before, "the default again");
        context.namespaces.deleteNamespace("public/java-quota");
    }

    private static ResourceQuota quota(double rate) {
        var quota = new ResourceQuota();
        quota.setMsgRateIn(rate);
        quota.setMsgRateOut(rate + 1);
        quota.setBandwidthIn(100000);
        quota.setBandwidthOut(200000);
        quota.setMemory(80);
        quota.setDynamic(false);
        return quota;
    }
}
