package pulsarium.matrix;

import static pulsarium.matrix.Check.consume;
import static pulsarium.matrix.Check.equal;
import static pulsarium.matrix.Check.nothingMore;
import static pulsarium.matrix.Check.receive;
import static pulsarium.matrix.Check.refused;
import static pulsarium.matrix.Check.send;
import static pulsarium.matrix.Check.text;
import static pulsarium.matrix.Check.texts;
import static pulsarium.matrix.Check.that;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import pulsarium.matrix.Main.Scenario;

/** Scenarios of reading: start positions, compaction, deduplication and schemas. */
final class Reading {
    /** A record with a JSON or Avro schema. */
    public static final class Person {
        public String name;
        public int age;

        static Person ada() {
            var ada = new Person();
            ada.name = "Ada";
            ada.age = 36;
            return ada;
        }

        @Override
        public String toString() {
            return name + " " + age;
        }
    }

    private Reading() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("seek-id", Reading::seekId);
        all.put("seek-time", Reading::seekTime);
        all.put("reader", Reading::reader);
        all.put("has-message-available", Reading::hasMessageAvailable);
        all.put("last-message-id", Reading::lastMessageId);
        all.put("compaction", Reading::compaction);
        all.put("compaction-batch", Reading::compactionBatch);
        all.put("table-view", Reading::tableView);
        all.put("deduplication", Reading::deduplication);
        all.put("schema-string", cell -> schema(cell, Schema.STRING, "grüße"));
        all.put("schema-json", cell -> schema(cell, Schema.JSON(Person.class), Person.ada()));
        all.put("schema-avro", cell -> schema(cell, Schema.AVRO(Person.class), Person.ada()));
        all.put("schema-incompatible", Reading::schemaIncompatible);
    }

    private static void seekId(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var ids = send(cell.producer(), texts(0, 10));
        equal(consume(consumer, 10), texts(0, 10));
        consumer.seek(ids.get(4));
        var first = consume(consumer, 1).get(0);
        that(List.of("a0004", "a0005").contains(first), first + " came first");
        int number = Integer.parseInt(first.substring(1));
        equal(consume(consumer, 9 - number), texts(number + 1, 10));
    }

    private static void seekTime(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var producer = cell.producer();
        send(producer, texts(0, 5));
        TimeUnit.MILLISECONDS.sleep(20);
        long moment = System.currentTimeMillis();
        send(producer, texts(5, 10));
        equal(consume(consumer, 10), texts(0, 10));
        consumer.seek(moment);
        equal(consume(consumer, 5), texts(5, 10));
        nothingMore(consumer);
    }

    private static Reader<byte[]> reading(Cell cell, MessageId start) throws Exception {
        return cell.client().newReader().topic(cell.topic()).startMessageId(start).create();
    }

    private static void next(Reader<byte[]> reader, List<String> wanted) throws Exception {
        for (var each : wanted) {
            var message = reader.readNext(Check.SECONDS, TimeUnit.SECONDS);
            that(message != null, "nothing in place of " + each);
            equal(text(message), each);
        }
    }

    private static void reader(Cell cell) throws Exception {
        var ids = send(cell.producer(), texts(0, 10));
        next(reading(cell, MessageId.earliest), texts(0, 10));
        next(reading(cell, ids.get(4)), texts(5, 10));
    }

    private static void hasMessageAvailable(Cell cell) throws Exception {
        var producer = cell.producer();
        send(producer, texts(0, 3));
        var reading = reading(cell, MessageId.earliest);
        for (var wanted : texts(0, 3)) {
            that(reading.hasMessageAvailable(), "false at the beginning");
            next(reading, List.of(wanted));
        }
        that(!reading.hasMessageAvailable(), "true at the end");
        send(producer, texts(3, 4));
        that(reading.hasMessageAvailable(), "false after one more");
    }

    private static void lastMessageId(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var wanted = (MessageIdAdv) send(cell.producer(), texts(0, 5)).get(4);
        var last = (MessageIdAdv) consumer.getLastMessageIds().get(0);
        equal(List.of(last.getLedgerId(), last.getEntryId()), List.of(wanted.getLedgerId(), wanted.getEntryId()));
    }

    private static void compaction(Cell cell) throws Exception {
        // The subscription must exist first, so that compaction retains its messages.
        cell.consuming(SubscriptionType.Exclusive).readCompacted(true).subscribe().close();
        var producer = cell.producer();
        for (var version : List.of("1", "2")) {
            for (var key : List.of("a", "b", "c")) {
                producer.newMessage().key(key).value(Check.bytes(key + version)).send();
            }
        }
        cell.administrate("compact");
        var consumer = cell.consuming(SubscriptionType.Exclusive).readCompacted(true).subscribe();
        equal(consume(consumer, 3), List.of("a2", "b2", "c2"));
        nothingMore(consumer);
    }

    private static void compactionBatch(Cell cell) throws Exception {
        cell.consuming(SubscriptionType.Exclusive).readCompacted(true).subscribe().close();
        var producer = cell.batches();
        int number = 0;
        for (var text : texts(0, 10)) {
            producer.newMessage().key("key " + number++ % 5).value(Check.bytes(text)).sendAsync();
        }
        producer.flush();
        cell.administrate("compact");
        var consumer = cell.consuming(SubscriptionType.Exclusive).readCompacted(true).subscribe();
        equal(consume(consumer, 5), texts(5, 10));
        nothingMore(consumer);
    }

    private static void tableView(Cell cell) throws Exception {
        var producer = cell.client().newProducer(Schema.STRING).topic(cell.topic()).create();
        producer.newMessage().key("a").value("1").send();
        producer.newMessage().key("b").value("2").send();
        producer.newMessage().key("a").value("3").send();
        try (var view = cell.client().newTableView(Schema.STRING).topic(cell.topic()).create()) {
            equal(view.get("a") + view.get("b"), "32");
            producer.newMessage().key("b").value("4").send();
            for (int wait = 0; wait < 500 && !"4".equals(view.get("b")); wait++) {
                TimeUnit.MILLISECONDS.sleep(20);
            }
            equal(view.get("b"), "4");
        }
    }

    private static void deduplication(Cell cell) throws Exception {
        var consumer = cell.consumer();
        for (int start : new int[] {0, 1}) {
            try (var producer = cell.producing().producerName("p").create()) {
                for (int number = start; number < start + 3; number++) {
                    var value = Check.bytes(texts(number, number + 1).get(0));
                    producer.newMessage().sequenceId(number).value(value).send();
                }
            }
        }
        equal(consume(consumer, 4), texts(0, 4));
        nothingMore(consumer);
    }

    private static <T> void schema(Cell cell, Schema<T> schema, T value) throws Exception {
        var consumer = cell.client().newConsumer(schema).topic(cell.topic()).subscriptionName("s").subscribe();
        cell.client().newProducer(schema).topic(cell.topic()).create().send(value);
        var message = receive(consumer, 1).get(0);
        equal(message.getValue().toString(), value.toString());
        equal(List.of(message.getSchemaVersion().length, (int) message.getSchemaVersion()[7]), List.of(8, 0), "version");
    }

    private static void schemaIncompatible(Cell cell) throws Exception {
        cell.client().newProducer(Schema.JSON(Person.class)).topic(cell.topic()).create().send(Person.ada());
        refused(PulsarClientException.IncompatibleSchemaException.class,
                () -> cell.client().newProducer(Schema.STRING).topic(cell.topic()).create());
    }
}
