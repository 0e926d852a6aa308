package pulsarium.foreign;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;

/** What scenarios say about what they got, and the messages they send. */
final class Check {
    static final int SECONDS = 90;
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
        that(Objects.equals(got, wanted), what + ": got " + shortened(got) + ", wanted " + shortened(wanted));
    }

    private static String shortened(Object value) {
        var text = String.valueOf(value);
        return text.length() > 2000 ? text.substring(0, 2000) + "..." : text;
    }

    /** The call fails with `kind`, directly or as the cause. */
    static <T extends Throwable> T fails(Class<T> kind, Callable<?> call) throws Exception {
        Object result;
        try {
            result = call.call();
        } catch (Exception failure) {
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                if (kind.isInstance(cause)) {
                    return kind.cast(cause);
                }
            }
            throw failure;
        }
        throw new AssertionError("no " + kind.getSimpleName() + " but " + result);
    }

    /** Polls what only another process can change. */
    static void eventually(Callable<Boolean> holds, String what) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (!holds.call()) {
            that(System.nanoTime() < end, "not in time: " + what);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    static List<String> texts(String prefix, int from, int to) {
        var texts = new ArrayList<String>();
        for (int number = from; number < to; number++) {
            texts.add(prefix + String.format("%04d", number));
        }
        return texts;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(Message<byte[]> message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    /** Sends without waiting for each; the message ids in order. */
    static List<MessageId> send(Producer<byte[]> producer, Collection<String> texts) throws Exception {
        var futures = new ArrayList<CompletableFuture<MessageId>>();
        for (var each : texts) {
            futures.add(producer.sendAsync(bytes(each)));
        }
        producer.flush();
        var ids = new ArrayList<MessageId>();
        for (var future : futures) {
            ids.add(get(future));
        }
        return ids;
    }

    static <T> T get(CompletableFuture<T> future) throws Exception {
        try {
            return future.get(SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException failure) {
            throw failure.getCause() instanceof Exception cause ? cause : failure;
        }
    }

    /** The next `count` messages, not acknowledged. */
    static <T> List<Message<T>> receive(Consumer<T> consumer, int count) throws Exception {
        var messages = new ArrayList<Message<T>>();
        while (messages.size() < count) {
            var message = consumer.receive(SECONDS, TimeUnit.SECONDS);
            that(message != null, messages.size() + " of " + count + " messages");
            messages.add(message);
        }
        return messages;
    }

    /** The texts of the next `count` messages, each acknowledged. */
    static List<String> consume(Consumer<byte[]> consumer, int count) throws Exception {
        var texts = new ArrayList<String>();
        for (var message : receive(consumer, count)) {
            consumer.acknowledge(message);
            texts.add(text(message));
        }
        return texts;
    }

    static void nothingMore(Consumer<?> consumer) throws Exception {
        var message = consumer.receive(QUIET_MS, TimeUnit.MILLISECONDS);
        that(message == null, "one too many: " + (message == null ? "" : message.getMessageId()));
    }

    static <T extends Comparable<T>> List<T> sorted(Collection<T> values) {
        return values.stream().sorted().toList();
    }
}
