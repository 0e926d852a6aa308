package pulsarium.admin;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * Calls PulsarAdmin and prints each call with what came of it as a line of JSON. Arguments: the broker's service URL, its
 * admin URL, and for a broker with authorization the tokens of a superuser and of a role without grants.
 */
public final class Main {
    /** A part of the program; what it needs of the others' doings is nothing. */
    interface Section {
        void run(Context context) throws Exception;
    }

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Whatever else wants to print must not end up among the lines.
        System.setOut(System.err);
        var recorder = new Recorder(lines);
        var secured = arguments.length > 2;
        var admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]);
        var client = PulsarClient.builder().serviceUrl(arguments[0]);
        if (secured) {
            admin.authentication(AuthenticationFactory.token(arguments[2]));
            client.authentication(AuthenticationFactory.token(arguments[2]));
        }
        var context = new Context(recorder, admin.build(), client.build());
        var sections = secured ? secured(arguments[1], arguments[3]) : open();
        for (var section : sections.entrySet()) {
            recorder.section(section.getKey());
            try {
                section.getValue().run(context);
            } catch (Exception | AssertionError failure) {
                var trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                recorder.failed(trace.toString());
            }
        }
        recorder.section("end");
        recorder.unanswered();
        // Not close(): its threads take seconds to end, and the process ends here anyway.
        System.exit(0);
    }

    private static Map<String, Section> open() {
        var all = new LinkedHashMap<String, Section>();
        all.put("clusters", ClusterCalls::run);
        all.put("tenants", TenantCalls::run);
        all.put("brokers", BrokerCalls::run);
        all.put("namespaces", NamespaceCalls::run);
        all.put("bundles", BundleCalls::run);
        all.put("namespace policies", NamespacePolicies::run);
        all.put("topics", TopicCalls::run);
        all.put("partitioned topics", PartitionedCalls::run);
        all.put("messages", MessageCalls::run);
        all.put("subscriptions", SubscriptionCalls::run);
        all.put("non-persistent topics", NonPersistentCalls::run);
        all.put("topic policies", TopicPolicyCalls::run);
        return all;
    }

    private static Map<String, Section> secured(String adminUrl, String token) throws Exception {
        var other = PulsarAdmin.builder().serviceHttpUrl(adminUrl)
                .authentication(AuthenticationFactory.token(token)).build();
        var nobody = PulsarAdmin.builder().serviceHttpUrl(adminUrl).build();
        return Map.of("authorization", context -> Authorization.run(context, other, nobody));
    }
}
