package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.fails;
import static pulsarium.foreign.Check.receive;

import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClientException.IncompatibleSchemaException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SchemaSerializationException;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaType;
import pulsarium.foreign.Schemas.Person;

/** What becomes of a topic's schema: the broker takes what is compatible, and refuses the rest (B-30). */
final class SchemaChanges {
    private SchemaChanges() {
    }

    /** A Person with more: its new field may be absent. */
    public static final class Resident {
        public String name;
        public int age;
        public String city;
    }

    /** A Person whose age is a text. */
    public static final class Stranger {
        public String name;
        public String age;
    }

    static void register(Map<String, Scenario> all) {
        all.put("schema-avro-grows", context -> grows(context, Schema.AVRO(Person.class), Schema.AVRO(Resident.class)));
        all.put("schema-json-grows", context -> grows(context, Schema.JSON(Person.class), Schema.JSON(Resident.class)));
        all.put("schema-incompatible", SchemaChanges::incompatible);
        all.put("schema-incompatible-consumer", SchemaChanges::incompatibleConsumer);
        all.put("schema-auto-produce-refused", SchemaChanges::autoProduceRefused);
        all.put("schema-key-value-records", SchemaChanges::keyValueRecords);
        all.put("schema-protobuf-native", SchemaChanges::protobufNative);
    }

    private static <T> void send(Context context, Schema<T> schema, T value) throws Exception {
        try (var producer = context.client().newProducer(schema).topic(context.topic()).create()) {
            producer.send(value);
        }
    }

    private static int version(Message<?> message) {
        return message.getSchemaVersion()[7];
    }

    /** The consumer without a schema of its own gets each message with that it was written with. */
    private static void grows(Context context, Schema<Person> old, Schema<Resident> grown) throws Exception {
        var resident = new Resident();
        resident.name = "Bob";
        resident.city = "Turin";
        try (var any = context.client().newConsumer(Schema.AUTO_CONSUME()).topic(context.topic()).subscriptionName("any")
                .subscribe();
                var newer = context.client().newConsumer(grown).topic(context.topic()).subscriptionName("newer")
                        .subscribe()) {
            // The consumer's schema was the first one.
            send(context, grown, resident);
            send(context, old, new Person("Ada", 36));
            send(context, grown, resident);
            var messages = receive(any, 3);
            equal(messages.stream().map(SchemaChanges::version).toList(), List.of(0, 1, 0), "versions");
            equal(messages.get(0).getValue().getField("city"), "Turin");
            equal(messages.get(1).getValue().getField("name"), "Ada");
            equal(messages.get(1).getValue().getFields().size(), 2, "fields of the older one");
            var values = receive(newer, 3).stream().map(message -> message.getValue().city).toList();
            equal(values.get(0), "Turin");
            equal(values.get(1), null, "the city of who has none");
        }
    }

    private static void incompatible(Context context) throws Exception {
        send(context, Schema.AVRO(Person.class), new Person("Ada", 36));
        for (var other : List.of(Schema.STRING, Schema.JSON(Person.class), Schema.AVRO(Stranger.class), Schema.INT32)) {
            fails(IncompatibleSchemaException.class,
                    () -> context.client().newProducer(other).topic(context.topic()).create());
        }
        send(context, Schema.AVRO(Person.class), new Person("Ada", 37));
    }

    private static void incompatibleConsumer(Context context) throws Exception {
        send(context, Schema.AVRO(Person.class), new Person("Ada", 36));
        for (var other : List.of(Schema.STRING, Schema.AVRO(Stranger.class))) {
            fails(IncompatibleSchemaException.class, () -> context.client().newConsumer(other).topic(context.topic())
                    .subscriptionName("s").subscribe());
        }
    }

    /** The client looks at the bytes with the schema that the broker gave it. */
    private static void autoProduceRefused(Context context) throws Exception {
        send(context, Schema.JSON(Person.class), new Person("Ada", 36));
        try (var producer = context.client().newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(context.topic()).create()) {
            fails(SchemaSerializationException.class, () -> producer.send(Check.bytes("no JSON")));
            producer.send(Schema.JSON(Person.class).encode(new Person("Bob", 1)));
        }
    }

    private static void keyValueRecords(Context context) throws Exception {
        for (var encoding : KeyValueEncodingType.values()) {
            var schema = Schema.KeyValue(Schema.AVRO(Person.class), Schema.JSON(Person.class), encoding);
            var topic = context.topic(encoding.name());
            try (var producer = context.client().newProducer(schema).topic(topic).create();
                    var consumer = context.client().newConsumer(schema).topic(topic).subscriptionName("s").subscribe();
                    var any = context.client().newConsumer(Schema.AUTO_CONSUME()).topic(topic).subscriptionName("any")
                            .subscribe()) {
                producer.send(new KeyValue<>(new Person("Ada", 36), new Person("Bob", 1)));
                var value = receive(consumer, 1).get(0).getValue();
                equal(value.getKey().name + value.getValue().name, "AdaBob");
                GenericRecord record = receive(any, 1).get(0).getValue();
                equal(record.getSchemaType(), SchemaType.KEY_VALUE);
                var pair = (KeyValue<?, ?>) record.getNativeObject();
                equal(((GenericRecord) pair.getKey()).getField("name"), "Ada");
                equal(((GenericRecord) pair.getValue()).getField("age"), 1);
                fails(IncompatibleSchemaException.class, () -> context.client()
                        .newProducer(Schema.KeyValue(Schema.AVRO(Person.class), Schema.AVRO(Stranger.class), encoding))
                        .topic(topic).create());
            }
        }
    }

    private static void protobufNative(Context context) throws Exception {
        var schema = Schema.PROTOBUF_NATIVE(Timestamp.class);
        var value = Timestamp.newBuilder().setSeconds(7).setNanos(1).build();
        try (var consumer = context.client().newConsumer(schema).topic(context.topic()).subscriptionName("s").subscribe();
                var any = context.client().newConsumer(Schema.AUTO_CONSUME()).topic(context.topic())
                        .subscriptionName("any").subscribe()) {
            send(context, schema, value);
            equal(receive(consumer, 1).get(0).getValue(), value);
            GenericRecord record = receive(any, 1).get(0).getValue();
            equal(record.getSchemaType(), SchemaType.PROTOBUF_NATIVE);
            equal(record.getField("seconds"), 7L);
            // Its root message must stay the same.
            fails(IncompatibleSchemaException.class, () -> context.client()
                    .newProducer(Schema.PROTOBUF_NATIVE(Duration.class)).topic(context.topic()).create());
        }
    }
}
