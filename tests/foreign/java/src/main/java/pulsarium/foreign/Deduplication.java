package pulsarium.foreign;

import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.that;

import java.util.Map;

/** What a producer sends again is stored once, where the namespace says so (B-27). */
final class Deduplication {
    private Deduplication() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("deduplication-chunks", Deduplication::chunks);
    }

    /** The chunks of a message share its sequence id and none of them is a duplicate; the same message again is. */
    private static void chunks(Context context) throws Exception {
        context.policy("deduplication", "true");
        try (var own = context.client().newConsumer().topic(context.ownTopic()).subscriptionName("s").subscribe()) {
            for (int round = 0; round < 2; round++) {
                try (var producer = context.producer().topic(context.ownTopic()).producerName("p").enableChunking(true)
                        .create()) {
                    producer.newMessage().sequenceId(7).value(new byte[6_000_000]).send();
                }
            }
            var message = Check.receive(own, 1).get(0);
            that(message.size() == 6_000_000, message.size() + " bytes");
            nothingMore(own);
        }
    }
}
