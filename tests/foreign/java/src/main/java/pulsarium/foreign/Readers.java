package pulsarium.foreign;

import static pulsarium.foreign.Check.SECONDS;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/** Readers: where they start, what they see, when they have seen all. */
final class Readers {
    private Readers() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("reader-earliest", Readers::earliest);
        all.put("reader-latest", Readers::latest);
        all.put("reader-message-id", Readers::messageId);
        all.put("reader-batched", Readers::batched);
        all.put("reader-partitions", Readers::partitions);
        all.put("reader-seek", Readers::seek);
        all.put("reader-time", Readers::time);
        all.put("table-view", Readers::tableView);
    }

    private static Reader<byte[]> reader(Context context, MessageId start, boolean inclusive) throws Exception {
        var builder = context.client().newReader().topic(context.topic()).startMessageId(start);
        return (inclusive ? builder.startMessageIdInclusive() : builder).create();
    }

    private static List<String> toEnd(Reader<byte[]> reader) throws Exception {
        var texts = new ArrayList<String>();
        while (reader.hasMessageAvailable()) {
            var message = reader.readNext(SECONDS, TimeUnit.SECONDS);
            that(message != null, "a message was available, none came");
            texts.add(Check.text(message));
        }
        return texts;
    }

    private static void earliest(Context context) throws Exception {
        try (var empty = reader(context, MessageId.earliest, false)) {
            that(!empty.hasMessageAvailable(), "a new topic has nothing");
        }
        try (var producer = context.newProducer(); var reader = reader(context, MessageId.earliest, false)) {
            send(producer, texts("a", 0, 100));
            equal(toEnd(reader), texts("a", 0, 100));
            send(producer, texts("b", 0, 5));
            equal(toEnd(reader), texts("b", 0, 5));
        }
    }

    private static void latest(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            send(producer, texts("a", 0, 5));
            try (var reader = reader(context, MessageId.latest, false); var last = reader(context, MessageId.latest, true)) {
                that(!reader.hasMessageAvailable(), "nothing behind the latest");
                equal(toEnd(last), texts("a", 4, 5), "latest, inclusive");
                send(producer, texts("a", 5, 8));
                equal(toEnd(reader), texts("a", 5, 8));
            }
        }
    }

    private static void messageId(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            from(context, send(producer, texts("a", 0, 20)));
        }
    }

    private static void batched(Context context) throws Exception {
        try (var producer = context.producer().enableBatching(true).batchingMaxMessages(10)
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
            var ids = send(producer, texts("a", 0, 20));
            try (var reader = reader(context, MessageId.earliest, false)) {
                equal(toEnd(reader), texts("a", 0, 20));
            }
            from(context, ids);
        }
    }

    private static void from(Context context, List<MessageId> ids) throws Exception {
        for (int start : new int[] {0, 4, 9, 10, ids.size() - 1}) {
            try (var after = reader(context, ids.get(start), false); var inclusive = reader(context, ids.get(start), true)) {
                equal(toEnd(after), texts("a", start + 1, ids.size()), "after " + ids.get(start));
                equal(toEnd(inclusive), texts("a", start, ids.size()), "from " + ids.get(start));
            }
            var copy = MessageId.fromByteArray(ids.get(start).toByteArray());
            try (var reader = reader(context, copy, false)) {
                equal(toEnd(reader), texts("a", start + 1, ids.size()), "after the stored form of " + copy);
            }
        }
    }

    private static void partitions(Context context) throws Exception {
        context.createPartitioned(context.topic(), 3);
        try (var producer = context.newProducer(); var reader = reader(context, MessageId.earliest, false)) {
            send(producer, texts("a", 0, 60));
            equal(sorted(toEnd(reader)), texts("a", 0, 60));
            reader.seek(MessageId.earliest);
            equal(sorted(toEnd(reader)), texts("a", 0, 60));
        }
    }

    private static void seek(Context context) throws Exception {
        try (var producer = context.newProducer(); var reader = reader(context, MessageId.earliest, false)) {
            var ids = send(producer, texts("a", 0, 20));
            equal(toEnd(reader), texts("a", 0, 20));
            reader.seek(ids.get(11));
            equal(toEnd(reader), texts("a", 12, 20), "after a seek to 11");
            reader.seek(MessageId.earliest);
            equal(toEnd(reader), texts("a", 0, 20), "from the earliest");
            reader.seek(MessageId.latest);
            that(!reader.hasMessageAvailable(), "nothing behind the latest");
        }
    }

    private static void time(Context context) throws Exception {
        try (var producer = context.newProducer(); var reader = reader(context, MessageId.latest, false)) {
            send(producer, texts("a", 0, 5));
            long moment = Seeking.laterThan(System.currentTimeMillis());
            send(producer, texts("a", 5, 10));
            equal(toEnd(reader), texts("a", 0, 10));
            reader.seek(moment);
            equal(toEnd(reader), texts("a", 5, 10));
            try (var recent = context.client().newReader().topic(context.topic())
                    .startMessageFromRollbackDuration(1, TimeUnit.HOURS).create()) {
                equal(toEnd(recent), texts("a", 0, 10), "since an hour ago");
            }
        }
    }

    private static void tableView(Context context) throws Exception {
        try (var producer = context.client().newProducer(Schema.STRING).topic(context.topic()).create()) {
            for (int number = 0; number < 12; number++) {
                producer.newMessage().key("k" + number % 4).value("v" + number).send();
            }
            try (var view = context.client().newTableView(Schema.STRING).topic(context.topic())
                    .autoUpdatePartitionsInterval(60, TimeUnit.SECONDS).create()) {
                equal(view.size(), 4);
                equal(view.get("k3"), "v11");
                var seen = new ConcurrentHashMap<String, String>();
                view.listen(seen::put);
                producer.newMessage().key("k0").value("new").send();
                producer.newMessage().key("k1").value(null).send();
                Check.eventually(() -> "new".equals(seen.get("k0")) && !view.containsKey("k1"), "the update");
                var left = new TreeMap<String, String>();
                view.forEach(left::put);
                equal(left.toString(), "{k0=new, k2=v10, k3=v11}");
            }
        }
    }
}
