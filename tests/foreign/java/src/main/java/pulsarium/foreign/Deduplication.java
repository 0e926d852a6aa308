package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.Map;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;

/** What a producer sends again is stored once, where the namespace says so (B-27). */
final class Deduplication {
    private Deduplication() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("deduplication", Deduplication::again);
        all.put("deduplication-chunks", Deduplication::chunks);
    }

    private static Producer<byte[]> producer(Context context, boolean chunks) throws Exception {
        return context.producer().topic(context.ownTopic()).producerName("p").enableChunking(chunks).create();
    }

    /** A producer that comes back with its name learns where it stopped; what it sends again is dropped. */
    private static void again(Context context) throws Exception {
        context.policy("deduplication", "true");
        try (var own = context.client().newConsumer().topic(context.ownTopic()).subscriptionName("s").subscribe()) {
            int next = 0;
            for (var unloaded : new boolean[] {false, true, false}) {
                try (var producer = producer(context, false)) {
                    equal(producer.getLastSequenceId(), next - 1L, "last sequence id");
                    for (int number = Math.max(0, next - 5); number < next + 10; number++) {
                        var id = producer.newMessage().sequenceId(number)
                                .value(Check.bytes(texts("", number, number + 1).get(0))).send();
                        equal(((MessageIdAdv) id).getEntryId() == -1, number < next, "dropped " + number);
                    }
                }
                equal(consume(own, 10), texts("", next, next + 10));
                next += 10;
                eventually(() -> context.stats(context.ownTopic()).contains("\"msgBacklog\":0,"), "the acknowledgements");
                if (unloaded) {
                    context.unload(context.ownTopic());
                }
            }
            nothingMore(own);
        }
    }

    /** The chunks of a message share its sequence id and none of them is a duplicate; the same message again is. */
    private static void chunks(Context context) throws Exception {
        context.policy("deduplication", "true");
        try (var own = context.client().newConsumer().topic(context.ownTopic()).subscriptionName("s").subscribe()) {
            for (int round = 0; round < 2; round++) {
                try (var producer = producer(context, true)) {
                    producer.newMessage().sequenceId(7).value(new byte[6_000_000]).send();
                }
            }
            var message = Check.receive(own, 1).get(0);
            that(message.size() == 6_000_000, message.size() + " bytes");
            nothingMore(own);
        }
    }
}
