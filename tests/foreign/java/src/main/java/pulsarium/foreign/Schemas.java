package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.that;

import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaType;

/** Schemas: the broker stores what a client brings and gives it back. */
final class Schemas {
    private Schemas() {
    }

    /** Fields are public for the schema's reflection. */
    public static final class Person {
        public String name;
        public int age;

        public Person() {
        }

        Person(String name, int age) {
            this.name = name;
            this.age = age;
        }
    }

    static void register(Map<String, Scenario> all) {
        all.put("schema-primitive", Schemas::primitive);
        all.put("schema-auto-consume", Schemas::autoConsume);
        all.put("schema-auto-produce", Schemas::autoProduce);
        all.put("schema-key-value", Schemas::keyValue);
        SchemaChanges.register(all);
    }

    private static void primitive(Context context) throws Exception {
        roundTrip(context, context.topic("string"), Schema.STRING, "grüße");
        roundTrip(context, context.topic("int64"), Schema.INT64, -5_000_000_000L);
        roundTrip(context, context.topic("bool"), Schema.BOOL, true);
        roundTrip(context, context.topic("double"), Schema.DOUBLE, 2.5);
    }

    private static <T> void roundTrip(Context context, String topic, Schema<T> schema, T value) throws Exception {
        try (var consumer = context.client().newConsumer(schema).topic(topic).subscriptionName("s").subscribe();
                var producer = context.client().newProducer(schema).topic(topic).create()) {
            producer.send(value);
            equal(receive(consumer, 1).get(0).getValue(), value);
        }
    }

    /** The consumer has no schema: it asks the broker for that of each message. */
    private static void autoConsume(Context context) throws Exception {
        try (var producer = context.client().newProducer(Schema.JSON(Person.class)).topic(context.topic()).create();
                var consumer = context.client().newConsumer(Schema.AUTO_CONSUME()).topic(context.topic())
                        .subscriptionName("s").subscribe()) {
            producer.send(new Person("Ada", 36));
            GenericRecord record = receive(consumer, 1).get(0).getValue();
            equal(record.getSchemaType(), SchemaType.JSON);
            equal(record.getField("name"), "Ada");
            equal(record.getField("age"), 36);
        }
    }

    private static void autoProduce(Context context) throws Exception {
        var schema = Schema.JSON(Person.class);
        try (var consumer = context.client().newConsumer(schema).topic(context.topic()).subscriptionName("s").subscribe();
                var producer = context.client().newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(context.topic()).create()) {
            producer.send(schema.encode(new Person("Ada", 36)));
            equal(receive(consumer, 1).get(0).getValue().name, "Ada");
        }
    }

    private static void keyValue(Context context) throws Exception {
        for (var encoding : KeyValueEncodingType.values()) {
            var schema = Schema.KeyValue(Schema.STRING, Schema.INT32, encoding);
            roundTrip(context, context.topic(encoding.name()), schema, new KeyValue<>("key", 7));
        }
    }
}
