package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.Map;
import org.apache.pulsar.client.api.SubscriptionType;

/** A consumer that holds too many messages gets no more until it acknowledges (B-06). */
final class Limits {
    private static final int LIMIT = 20;

    private Limits() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("unacked-limit", Limits::unacked);
    }

    private static void unacked(Context context) throws Exception {
        context.policy("maxUnackedMessagesPerConsumer", "" + LIMIT);
        context.client().newConsumer().topic(context.ownTopic()).subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared).subscribe().close();
        try (var producer = context.client().newProducer().topic(context.ownTopic()).enableBatching(false).create()) {
            send(producer, texts("a", 0, 100));
        }
        try (var consumer = context.client().newConsumer().topic(context.ownTopic()).subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared).subscribe()) {
            var held = receive(consumer, LIMIT);
            nothingMore(consumer);
            that(context.stats(context.ownTopic()).contains("\"blockedConsumerOnUnackedMsgs\":true"), "blocked");
            for (var message : held) {
                consumer.acknowledge(message);
            }
            for (var text : texts("a", LIMIT, 100)) {
                var message = receive(consumer, 1).get(0);
                equal(Check.text(message), text);
                consumer.acknowledge(message);
            }
            nothingMore(consumer);
        }
    }
}
