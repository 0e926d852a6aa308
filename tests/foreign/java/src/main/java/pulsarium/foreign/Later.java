package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

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
            producer.newMessage().value(Check.bytes("later")).deliverAfter(3500, TimeUnit.MILLISECONDS).send();
            producer.newMessage().value(Check.bytes("sooner")).deliverAt(System.currentTimeMillis() + 1300).send();
            var sent = System.nanoTime();
            send(producer, texts("a", 0, 50));
            equal(consume(consumer, 50), texts("a", 0, 50));
            that(seconds(sent) < 1.3, "plain messages waited for delayed ones");
            // A tick of a second early at most.
            for (var wanted : List.of("sooner", "later")) {
                var message = receive(consumer, 1).get(0);
                equal(Check.text(message), wanted);
                that(seconds(sent) > (wanted.equals("later") ? 2.4 : 0.2), wanted + " after " + seconds(sent) + " s");
                consumer.acknowledge(message);
            }
            that(seconds(sent) < 7, "late: " + seconds(sent) + " s");
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
