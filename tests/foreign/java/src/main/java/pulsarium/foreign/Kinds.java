package pulsarium.foreign;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonDeserializer;
import com.google.gson.JsonElement;
import com.google.gson.JsonPrimitive;
import com.google.gson.JsonSerializer;
import com.google.protobuf.Api;
import com.google.protobuf.SourceContext;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/** Schemas by name, and their values as JSON: bytes in base64, moments in milliseconds or as ISO 8601 has them. */
final class Kinds {
    static final Gson GSON = new GsonBuilder().serializeNulls()
            .registerTypeAdapter(byte[].class, (JsonSerializer<byte[]>) (value, type, context) -> base64(value))
            .registerTypeAdapter(byte[].class, (JsonDeserializer<byte[]>) (json, type, context) -> bytes(json))
            .registerTypeAdapter(Instant.class, text(Instant::toString))
            .registerTypeAdapter(Instant.class, ofText(Instant::parse))
            .create();

    private static final Map<String, Kind<?>> ALL = new HashMap<>();

    static {
        add("bytes", Schema.BYTES, byte[].class);
        add("string", Schema.STRING, String.class);
        add("int8", Schema.INT8, Byte.class);
        add("int16", Schema.INT16, Short.class);
        add("int32", Schema.INT32, Integer.class);
        add("int64", Schema.INT64, Long.class);
        add("float", Schema.FLOAT, Float.class);
        add("double", Schema.DOUBLE, Double.class);
        add("boolean", Schema.BOOL, Boolean.class);
        add("date", Schema.DATE, json -> new Date(json.getAsLong()), value -> new JsonPrimitive(value.getTime()));
        add("time", Schema.TIME, json -> new Time(json.getAsLong()), value -> new JsonPrimitive(value.getTime()));
        add("timestamp", Schema.TIMESTAMP, json -> new Timestamp(json.getAsLong()),
                value -> new JsonPrimitive(value.getTime()));
        add("instant", Schema.INSTANT, Instant.class);
        addText("local-date", Schema.LOCAL_DATE, LocalDate::parse);
        addText("local-time", Schema.LOCAL_TIME, LocalTime::parse);
        addText("local-date-time", Schema.LOCAL_DATE_TIME, LocalDateTime::parse);
        addBoth("order", Order.class);
        // Without it an Instant has microseconds, which Avro's rules take for what others have written as milliseconds.
        add("avro-more", Schema.AVRO(SchemaDefinition.<InAvro.More>builder().withPojo(InAvro.More.class)
                .withJSR310ConversionEnabled(true).build()), InAvro.More.class);
        add("json-more", Schema.JSON(InJson.More.class), InJson.More.class);
        add("json-moment", Schema.JSON(Moment.class), Moment.class);
        addBoth("user-1", First.User.class);
        addBoth("user-2", Second.User.class);
        for (var encoding : KeyValueEncodingType.values()) {
            var name = encoding.name().toLowerCase(Locale.ROOT);
            addPairs("pairs-" + name, Schema.STRING, String.class, Schema.INT32, Integer.class, encoding);
            addPairs("record-pairs-" + name,
                    Schema.AVRO(Home.class), Home.class, Schema.JSON(Home.class), Home.class, encoding);
        }
        add("protobuf-native", Schema.PROTOBUF_NATIVE(Api.class),
                json -> Api.newBuilder().setName(json.getAsString())
                        .setSourceContext(SourceContext.newBuilder().setFileName("of it")).build(),
                value -> new JsonPrimitive(value.getName()));
    }

    private Kinds() {
    }

    /** A schema with its values. */
    record Kind<T>(Schema<T> schema, Function<JsonElement, T> read, Function<T, JsonElement> tell) {
    }

    static Kind<?> named(String name) {
        return ALL.get(name);
    }

    private static <T> void add(
            String name, Schema<T> schema, Function<JsonElement, T> read, Function<T, JsonElement> tell) {
        ALL.put(name, new Kind<>(schema, read, tell));
    }

    private static <T> void add(String name, Schema<T> schema, Class<T> type) {
        add(name, schema, json -> GSON.fromJson(json, type), GSON::toJsonTree);
    }

    private static <T> void addText(String name, Schema<T> schema, Function<String, T> parse) {
        add(name, schema, json -> parse.apply(json.getAsString()), value -> new JsonPrimitive(value.toString()));
    }

    private static <T> void addBoth(String name, Class<T> type) {
        add("avro-" + name, Schema.AVRO(type), type);
        add("json-" + name, Schema.JSON(type), type);
    }

    private static <K, V> void addPairs(
            String name, Schema<K> key, Class<K> keys, Schema<V> value, Class<V> values, KeyValueEncodingType encoding) {
        add(name, Schema.KeyValue(key, value, encoding), json -> {
            var pair = json.getAsJsonArray();
            return new KeyValue<>(GSON.fromJson(pair.get(0), keys), GSON.fromJson(pair.get(1), values));
        }, pair -> {
            var told = new JsonArray();
            told.add(GSON.toJsonTree(pair.getKey()));
            told.add(GSON.toJsonTree(pair.getValue()));
            return told;
        });
    }

    private static <T> JsonSerializer<T> text(Function<T, String> format) {
        return (value, type, context) -> new JsonPrimitive(format.apply(value));
    }

    private static <T> JsonDeserializer<T> ofText(Function<String, T> parse) {
        return (json, type, context) -> parse.apply(json.getAsString());
    }

    static JsonPrimitive base64(byte[] value) {
        return new JsonPrimitive(Base64.getEncoder().encodeToString(value));
    }

    private static byte[] bytes(JsonElement json) {
        return Base64.getDecoder().decode(json.getAsString());
    }

    /** Java's objects may be null, and its primitive types may not. */
    public static final class Order {
        public String name;
        public int count;
        public long total;
        public float weight;
        public double price;
        public boolean paid;
        public String note;
        public Color color;
        public List<String> tags;
        public Map<String, Integer> counts;
        public Home home;
    }

    /** One of several. */
    public enum Color {
        RED, BLUE
    }

    /** Inside another. */
    public static final class Home {
        public String street;
        public Integer number;
    }

    /** What the official Python client has not. */
    public abstract static class Rest {
        public byte[] data;
        public List<Home> homes;
        public Map<String, Home> byName;
        public List<List<Long>> rows;
        public Home none;
    }

    /** As Avro has moments. */
    static final class InAvro {
        private InAvro() {
        }

        /** All of it. */
        public static final class More extends Rest {
            public Instant at;
        }
    }

    /** As the definition of a schema has moments, also in JSON. */
    static final class InJson {
        private InJson() {
        }

        /** All of it. */
        public static final class More extends Rest {
            public Long at;
        }
    }

    /** In JSON not as its definition says: seconds, and a fraction. */
    public static final class Moment {
        public Instant at;
    }

    /** The first version. */
    static final class First {
        private First() {
        }

        /** As it began. */
        public static final class User {
            public String name;
            public int age;
        }
    }

    /** The second version. */
    static final class Second {
        private Second() {
        }

        /** With a field that may be null. */
        public static final class User {
            public String name;
            public int age;
            public String email;
        }
    }
}
