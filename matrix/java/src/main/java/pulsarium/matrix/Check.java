package pulsarium.matrix;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;

/** Assertions of scenarios, and the sending and receiving of messages. */
final class Check {
    static final int SECONDS = 20;
    static final int QUIET_MS = 300;

    private Check() {
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object got, Object wanted) {
        equal(got, wanted, "values");
    }

    static void equal(Object got, Object wanted, String what) {
        that(Objects.equals(got, wanted), what + ": got " + got + ", wanted " + wanted);
    }

    static void refused(Class<? extends Exception> kind, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (Exception failure) {
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                if (kind.isInstance(cause)) {
                    return;
                }
            }
            throw failure;
        }
        throw new AssertionError("not refused with " + kind.getSimpleName());
    }

    static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(number -> String.format("a%04d", number)).toList();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(Message<byte[]> message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    /** Sends without waiting for each message, and returns the message ids in order. */
    static List<MessageId> send(Producer<byte[]> producer, Collection<String> texts) throws Exception {
        var receipts = new ArrayList<CompletableFuture<MessageId>>();
        for (var each : texts) {
            receipts.add(producer.sendAsync(bytes(each)));
        }
        producer.flush();
        var ids = new ArrayList<MessageId>();
        for (var receipt : receipts) {
            ids.add(receipt.get(SECONDS, TimeUnit.SECONDS));
        }
        return ids;
    }

    /** Returns the next messages without acknowledging them. */
    static <T> List<Message<T>> receive(Consumer<T> consumer, int count) throws Exception {
        var messages = new ArrayList<Message<T>>();
        while (messages.size() < count) {
            var message = consumer.receive(SECONDS, TimeUnit.SECONDS);
            that(message != null, messages.size() + " of " + count + " messages");
            messages.add(message);
        }
        return messages;
    }

    static List<String> textsOf(Collection<Message<byte[]>> messages) {
        return messages.stream().map(Check::text).toList();
    }

    /** Returns the texts of the next messages after acknowledging each. */
    static List<String> consume(Consumer<byte[]> consumer, int count) throws Exception {
        var messages = receive(consumer, count);
        for (var message : messages) {
            consumer.acknowledge(message);
        }
        return textsOf(messages);
    }

    static void nothingMore(Consumer<?> consumer) throws Exception {
        var message = consumer.receive(QUIET_MS, TimeUnit.MILLISECONDS);
        that(message == null, "an unexpected message arrived: " + (message == null ? "" : message.getMessageId()));
    }

    static List<String> sorted(Collection<String> values) {
        return values.stream().sorted().toList();
    }
}
