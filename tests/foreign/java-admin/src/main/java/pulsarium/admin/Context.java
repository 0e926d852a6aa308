package pulsarium.admin;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.Bookies;
import org.apache.pulsar.client.admin.BrokerStats;
import org.apache.pulsar.client.admin.Brokers;
import org.apache.pulsar.client.admin.Clusters;
import org.apache.pulsar.client.admin.Lookup;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.NonPersistentTopics;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.admin.ResourceGroups;
import org.apache.pulsar.client.admin.ResourceQuotas;
import org.apache.pulsar.client.admin.Tenants;
import org.apache.pulsar.client.admin.TopicPolicies;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.client.api.PulsarClient;

/** The recorded interfaces of one PulsarAdmin, and a client that makes messages. */
final class Context {
    private static final int SECONDS = 20;
    private static final Map<Integer, Class<? extends PulsarAdminException>> EXCEPTIONS = Map.of(
            401, PulsarAdminException.NotAuthorizedException.class,
            403, PulsarAdminException.NotAuthorizedException.class,
            404, PulsarAdminException.NotFoundException.class,
            405, PulsarAdminException.NotAllowedException.class,
            409, PulsarAdminException.ConflictException.class,
            412, PulsarAdminException.PreconditionFailedException.class);

    final PulsarClient client;
    final Clusters clusters;
    final Tenants tenants;
    final Brokers brokers;
    final BrokerStats brokerStats;
    final Bookies bookies;
    final Namespaces namespaces;
    final Topics topics;
    final TopicPolicies topicPolicies;
    final NonPersistentTopics nonPersistentTopics;
    final Lookup lookups;
    final ResourceQuotas resourceQuotas;
    final ResourceGroups resourceGroups;
    private final Recorder recorder;

    Context(Recorder recorder, PulsarAdmin admin, PulsarClient client) {
        this.recorder = recorder;
        this.client = client;
        clusters = recorder.wrap(Clusters.class, admin.clusters());
        tenants = recorder.wrap(Tenants.class, admin.tenants());
        brokers = recorder.wrap(Brokers.class, admin.brokers());
        brokerStats = recorder.wrap(BrokerStats.class, admin.brokerStats());
        bookies = recorder.wrap(Bookies.class, admin.bookies());
        namespaces = recorder.wrap(Namespaces.class, admin.namespaces());
        topics = recorder.wrap(Topics.class, admin.topics());
        topicPolicies = recorder.wrap(TopicPolicies.class, admin.topicPolicies());
        nonPersistentTopics = recorder.wrap(NonPersistentTopics.class, admin.nonPersistentTopics());
        lookups = recorder.wrap(Lookup.class, admin.lookups());
        resourceQuotas = recorder.wrap(ResourceQuotas.class, admin.resourceQuotas());
        resourceGroups = recorder.wrap(ResourceGroups.class, admin.resourcegroups());
    }

    /** Another caller of the same broker. */
    Context as(PulsarAdmin other) {
        return new Context(recorder, other, client);
    }

    interface Call {
        void run() throws Exception;
    }

    /** The call ends with this HTTP status, and with the exception that stands for it. */
    void fails(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (PulsarAdminException error) {
            var kind = EXCEPTIONS.getOrDefault(status, PulsarAdminException.class);
            that(error.getClass() == kind && error.getStatusCode() == status,
                    "wanted " + kind.getSimpleName() + " " + status + ", got " + error + " " + error.getStatusCode());
            return;
        }
        throw new AssertionError("no error " + status);
    }

    /** The same for getMessageIdByIndex: the Java client wraps its errors once too often, and their status is lost. */
    void failsInside(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (PulsarAdminException error) {
            that(String.valueOf(error).contains("HTTP " + status + " "), "wanted " + status + ", got " + error);
            return;
        }
        throw new AssertionError("no error " + status);
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    void equal(Object got, Object wanted, String what) throws Exception {
        that(recorder.text(got).equals(recorder.text(wanted)),
                what + ": got " + recorder.text(got) + ", wanted " + recorder.text(wanted));
    }

    /** Polls, without a record of it, what the broker does later. */
    void eventually(Callable<Boolean> holds, String what) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (!recorder.quietly(holds)) {
            that(System.nanoTime() < end, "not in time: " + what);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    <T> T quietly(Callable<T> call) throws Exception {
        return recorder.quietly(call);
    }

    /** The broker's own cluster. */
    String cluster() throws Exception {
        var all = quietly(() -> clusters.getClusters());
        return all.stream().filter(name -> !name.startsWith("java-")).findFirst().orElseThrow();
    }

    String text(Object value) throws Exception {
        return recorder.text(value);
    }
}
