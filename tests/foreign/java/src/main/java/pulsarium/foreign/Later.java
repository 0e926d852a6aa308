package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.SubscriptionType;

/** Delayed delivery: later on Shared and Key_Shared, at once on the others (B-21). */
final class Later {
    private Later() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("delayed", Later::delayed);
        all.put("delayed-at-once", Later::atOnce);
    }

    private static void delayed(Context context) throws Exception {
        var type = context.type();
        try (var consumer = context.newConsumer(type); var producer = context.newProducer()) {
            var sent = System.nanoTime();
            producer.newMessage().value(Check.bytes("later")).deliverAfter(10, TimeUnit.SECONDS).send();
            producer.newMessage().value(Check.bytes("sooner")).deliverAt(System.currentTimeMillis() + 1300).send();
            send(producer, texts("a", 0, 50));
            // Plain messages wait for no delayed one; how many come before the one of a second, a slow machine decides.
            var plain = new ArrayList<String>();
            while (plain.size() < 51) {
                var text = consume(consumer, 1).get(0);
                // A tick of a second early at most.
                that(!text.equals("sooner") || seconds(sent) > 0.2, "sooner after " + seconds(sent) + " s");
                plain.add(text);
            }
            that(plain.remove("sooner"), "later came before sooner");
            equal(plain, texts("a", 0, 50));
            equal(consume(consumer, 1), List.of("later"));
            that(seconds(sent) > 8.9, "later after " + seconds(sent) + " s");
            nothingMore(consumer);
        }
    }

    private static double seconds(long since) {
        return (System.nanoTime() - since) / 1e9;
    }

    private static void atOnce(Context context) throws Exception {
        for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Failover)) {
            try (var consumer = context.newConsumer(type); var producer = context.newProducer()) {
                producer.newMessage().value(Check.bytes("delayed")).deliverAfter(1, TimeUnit.HOURS).send();
                producer.send(Check.bytes("plain"));
                equal(consume(consumer, 2), List.of("delayed", "plain"));
            }
        }
    }
}
