package pulsarium.admin;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.client.api.MessageId;

/** Subscriptions and where their cursors stand. */
final class SubscriptionCalls {
    private static final String NAMESPACE = "public/java-subscriptions";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/t";
    private static final String MISSING = "persistent://" + NAMESPACE + "/missing";

    private SubscriptionCalls() {
    }

    static void run(Context context) throws Exception {
        var topics = context.topics;
        context.namespaces.createNamespace(NAMESPACE);
        topics.createNonPartitionedTopic(TOPIC);
        var ids = new ArrayList<MessageId>();
        try (var producer = context.client.newProducer().topic(TOPIC).enableBatching(false).create()) {
            for (int number = 0; number < 10; number++) {
                ids.add(producer.send(new byte[10]));
            }
        }
        created(context);
        moved(context, ids);
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }

    private static void created(Context context) throws Exception {
        var topics = context.topics;
        topics.createSubscription(TOPIC, "s", MessageId.earliest);
        topics.createSubscription(TOPIC, "late", MessageId.latest, true);
        topics.createSubscription(TOPIC, "with", MessageId.earliest, false, Map.of("a", "b"));
        context.fails(409, () -> topics.createSubscription(TOPIC, "s", MessageId.earliest));
        context.fails(404, () -> topics.createSubscription("persistent://public/java-missing/t", "s", MessageId.earliest));
        topics.getSubscriptions(TOPIC);
        context.equal(topics.getSubscriptionProperties(TOPIC, "with"), Map.of("a", "b"), "properties");
        topics.updateSubscriptionProperties(TOPIC, "with", Map.of("c", "d"));
        context.equal(topics.getSubscriptionProperties(TOPIC, "with"), Map.of("c", "d"), "properties");
        context.fails(404, () -> topics.getSubscriptionProperties(TOPIC, "missing"));
        topics.deleteSubscription(TOPIC, "with");
        topics.deleteSubscription(TOPIC, "late", true);
        context.fails(404, () -> topics.deleteSubscription(TOPIC, "late"));
        context.fails(404, () -> topics.deleteSubscription(MISSING, "s"));
    }

    private static void moved(Context context, List<MessageId> ids) throws Exception {
        var topics = context.topics;
        backlog(context, 10);
        topics.skipMessages(TOPIC, "s", 2);
        backlog(context, 8);
        topics.analyzeSubscriptionBacklog(TOPIC, "s", Optional.empty());
        topics.analyzeSubscriptionBacklog(TOPIC, "s", Optional.of(ids.get(5)));
        topics.skipAllMessages(TOPIC, "s");
        backlog(context, 0);
        topics.resetCursor(TOPIC, "s", ids.get(3));
        backlog(context, 7);
        topics.resetCursor(TOPIC, "s", ids.get(3), true);
        backlog(context, 6);
        topics.resetCursor(TOPIC, "s", 1);
        backlog(context, 10);
        topics.resetCursor(TOPIC, "s", MessageId.latest);
        backlog(context, 0);
        topics.resetCursor(TOPIC, "s", MessageId.earliest);
        backlog(context, 10);
        topics.expireMessages(TOPIC, "s", ids.get(2), false);
        context.eventually(() -> backlogOf(context) == 7, "three messages expired");
        topics.expireMessages(TOPIC, "s", ids.get(3), true);
        context.eventually(() -> backlogOf(context) <= 7, "an exclusive position");
        backlogOf(context);
        topics.expireMessages(TOPIC, "s", 3600);
        topics.expireMessagesForAllSubscriptions(TOPIC, 3600);
        for (var call : List.<Context.Call>of(
                () -> topics.skipMessages(TOPIC, "missing", 1), () -> topics.skipAllMessages(TOPIC, "missing"),
                () -> topics.resetCursor(TOPIC, "missing", 1), () -> topics.resetCursor(TOPIC, "missing", ids.get(0)),
                () -> topics.expireMessages(TOPIC, "missing", 1),
                () -> topics.analyzeSubscriptionBacklog(TOPIC, "missing", Optional.empty()),
                () -> topics.skipMessages(MISSING, "s", 1))) {
            context.fails(404, call);
        }
        topics.skipAllMessages(TOPIC, "s");
        context.fails(409, () -> topics.expireMessages(TOPIC, "s", 1));
    }

    private static long backlogOf(Context context) throws Exception {
        return context.topics.getStats(TOPIC, true).getSubscriptions().get("s").getMsgBacklog();
    }

    private static void backlog(Context context, long wanted) throws Exception {
        context.equal(context.quietly(() -> backlogOf(context)), wanted, "the backlog");
    }
}
