package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.that;
import static pulsarium.foreign.Check.texts;

import com.google.gson.Gson;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Parts of a batch acknowledged by themselves (PIP-54): steps around a restart. */
final class BatchIndex {
    private BatchIndex() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("batches-publish", context -> publish(context, texts("", 0, context.number("messages"))));
        all.put("batches-acknowledge", BatchIndex::acknowledge);
        all.put("batches-rest", BatchIndex::left);
    }

    /** With receipts each acknowledgement can be waited for, which takes a tenth of a second. */
    private static Consumer<byte[]> subscribe(Context context, boolean opted, boolean receipts) throws Exception {
        return context.consumer(context.type()).enableBatchIndexAcknowledgment(opted).isAckReceiptEnabled(receipts)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    /** Batches of ten. */
    private static void publish(Context context, List<String> texts) throws Exception {
        try (var producer = context.producer().enableBatching(true).batchingMaxMessages(10)
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
            var entries = new HashSet<Long>();
            for (var id : send(producer, texts)) {
                entries.add(((MessageIdAdv) id).getEntryId());
            }
            equal(entries.size(), texts.size() / 10, "batches");
        }
    }

    /** Whether it is acknowledged: every third message, and the second batch. */
    private static boolean goes(String text) {
        int number = Integer.parseInt(text);
        return number % 3 == 0 || number / 10 == 1;
    }

    private static void acknowledgeSome(Consumer<byte[]> consumer, int count) throws Exception {
        var answers = receive(consumer, count).stream().filter(message -> goes(Check.text(message)))
                .map(consumer::acknowledgeAsync).toList();
        for (var answer : answers) {
            get(answer);
        }
    }

    private static void acknowledge(Context context) throws Exception {
        try (var consumer = subscribe(context, context.flag("opted"), true)) {
            acknowledgeSome(consumer, context.number("messages"));
        }
    }

    /** These messages are left, in this order. */
    private static void left(Context context) throws Exception {
        var wanted = context.arguments().getAsJsonArray("wanted");
        try (var consumer = subscribe(context, true, false)) {
            var texts = consume(consumer, wanted.size());
            that(new Gson().toJsonTree(texts).equals(wanted), "got " + texts);
            nothingMore(consumer);
        }
    }
}
