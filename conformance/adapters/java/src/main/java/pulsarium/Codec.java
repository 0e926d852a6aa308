package pulsarium;

import java.nio.charset.StandardCharsets;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Schema;

/** A schema, and its values as text. */
record Codec(String name, Schema<Object> schema) {
    /** The record of scenarios with schemas. */
    public static final class Person {
        public String name;
        public int age;
    }

    /** Returns the codec of the option `schema`, which a request may leave out. */
    @SuppressWarnings("unchecked")
    static Codec of(Request request) {
        String name = request.has("schema") ? request.text("schema") : "bytes";
        Schema<?> schema = switch (name) {
            case "bytes" -> Schema.BYTES;
            case "text" -> Schema.STRING;
            case "json" -> Schema.JSON(Person.class);
            case "avro" -> Schema.AVRO(Person.class);
            default -> throw new IllegalArgumentException("no schema " + name);
        };
        return new Codec(name, (Schema<Object>) schema);
    }

    Object encoded(String text) {
        return switch (name) {
            case "bytes" -> text.getBytes(StandardCharsets.UTF_8);
            case "text" -> text;
            default -> Operations.GSON.fromJson(text, Person.class);
        };
    }

    /** Returns the value as text, or null for a message without a value. */
    String decoded(Message<Object> message) {
        Object value = message.getValue();
        if (value == null) {
            return null;
        }
        return switch (name) {
            case "bytes" -> new String((byte[]) value, StandardCharsets.UTF_8);
            case "text" -> (String) value;
            default -> Operations.GSON.toJson(value);
        };
    }
}
