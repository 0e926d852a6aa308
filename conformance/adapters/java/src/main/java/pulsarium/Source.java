package pulsarium;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.impl.ReaderImpl;

/** A consumer or a reader, and the schema of its values. */
final class Source implements AutoCloseable {
    /** Whether this release tells the broker's index of a message. */
    static final boolean HAS_INDEX =
            Arrays.stream(Message.class.getMethods()).anyMatch(each -> each.getName().equals("getIndex"));

    private final Consumer<Object> consumer;
    private final Reader<Object> reader;
    private final Codec codec;
    private final boolean hasNoQueue;
    private CompletableFuture<Message<Object>> pending;

    Source(Consumer<Object> consumer, Reader<Object> reader, Codec codec, boolean hasNoQueue) {
        this.consumer = consumer;
        this.reader = reader;
        this.codec = codec;
        this.hasNoQueue = hasNoQueue;
    }

    Consumer<Object> consumer() {
        return consumer;
    }

    Reader<Object> reader() {
        return reader;
    }

    Codec codec() {
        return codec;
    }

    /** Returns the next message, or null when none arrives in time. */
    Message<Object> next(long nanoseconds) throws Exception {
        int milliseconds = (int) (Math.max(nanoseconds, 0) / 1_000_000);
        if (hasNoQueue) {
            return awaited(milliseconds);
        }
        return reader == null ? consumer.receive(milliseconds, TimeUnit.MILLISECONDS)
                : reader.readNext(milliseconds, TimeUnit.MILLISECONDS);
    }

    /** Receives without a queue, where the client has no timeout. What arrives too late is for the next call. */
    private Message<Object> awaited(int milliseconds) throws Exception {
        if (pending == null) {
            pending = consumer.receiveAsync();
        }
        try {
            Message<Object> message = pending.get(milliseconds, TimeUnit.MILLISECONDS);
            pending = null;
            return message;
        } catch (TimeoutException late) {
            return null;
        }
    }

    void seek(MessageId id) throws PulsarClientException {
        if (reader == null) {
            consumer.seek(id);
        } else {
            reader.seek(id);
        }
    }

    void seek(long time) throws PulsarClientException {
        if (reader == null) {
            consumer.seek(time);
        } else {
            reader.seek(time);
        }
    }

    /** Calls what every release has: newer ones have the ids of several topics, and those of readers. */
    @SuppressWarnings("deprecation")
    MessageId lastMessageId() throws PulsarClientException {
        return (reader == null ? consumer : ((ReaderImpl<Object>) reader).getConsumer()).getLastMessageId();
    }

    @Override
    public void close() throws Exception {
        if (reader == null) {
            consumer.close();
        } else {
            reader.close();
        }
    }

    /** Returns what a message has, but for its id. */
    static JsonObject told(Message<Object> message, Codec codec) {
        JsonObject told = new JsonObject();
        String value = codec.decoded(message);
        told.addProperty("value", value == null ? "" : value);
        if (value == null) {
            told.addProperty("null", true);
        }
        if (message.hasKey()) {
            told.addProperty("key", message.getKey());
        }
        if (message.hasOrderingKey()) {
            told.addProperty("ordering-key", new String(message.getOrderingKey(), StandardCharsets.UTF_8));
        }
        if (!message.getProperties().isEmpty()) {
            told.add("properties", Operations.GSON.toJsonTree(message.getProperties()));
        }
        if (message.getEventTime() > 0) {
            told.addProperty("event-time", message.getEventTime());
        }
        told.addProperty("topic", message.getTopicName());
        told.add("place", place(message.getMessageId()));
        told.addProperty("redeliveries", message.getRedeliveryCount());
        told.addProperty("publisher", message.getProducerName());
        told.addProperty("sequence", message.getSequenceId());
        if (HAS_INDEX) {
            message.getIndex().ifPresent(index -> told.addProperty("index", index));
        }
        byte[] version = message.getSchemaVersion();
        if (version != null && version.length > 0) {
            told.addProperty("schema-version", new BigInteger(version));
        }
        return told;
    }

    /** Returns ledger, entry and batch index. All releases have the same texts of ids, but other classes. */
    static JsonArray place(MessageId id) {
        String text = id.toString();
        String[] parts = text.substring(text.lastIndexOf(';') + 1).split(":"); // behind that of the first chunk
        JsonArray place = new JsonArray();
        place.add(Long.parseLong(parts[0]));
        place.add(Long.parseLong(parts[1]));
        place.add(parts.length > 3 ? Integer.parseInt(parts[3]) : -1);
        return place;
    }
}
