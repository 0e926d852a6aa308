package pulsarium.admin;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/** Stands before PulsarAdmin's interfaces and prints what is called and what comes of it. */
final class Recorder {
    private final ObjectMapper json = ObjectMapperFactory.create();
    private final PrintStream lines;
    /** Interface -> its methods that no call has answered without an error, each name once. */
    private final Map<String, TreeSet<String>> unanswered = new TreeMap<>();
    private String section = "";
    private boolean quiet;

    Recorder(PrintStream lines) {
        this.lines = lines;
    }

    void section(String name) {
        section = name;
    }

    <T> T wrap(Class<T> kind, T real) {
        unanswered.computeIfAbsent(kind.getSimpleName(), name -> synchronousMethods(kind));
        return kind.cast(Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind},
                (proxy, method, arguments) -> call(kind.getSimpleName(), real, method, arguments)));
    }

    private static TreeSet<String> synchronousMethods(Class<?> kind) {
        var names = new TreeSet<String>();
        Arrays.stream(kind.getMethods()).map(Method::getName).filter(name -> !name.endsWith("Async")).forEach(names::add);
        return names;
    }

    private Object call(String kind, Object real, Method method, Object[] arguments) throws Throwable {
        var line = new LinkedHashMap<String, Object>();
        line.put("section", section);
        line.put("call", kind + "." + method.getName());
        line.put("arguments", arguments == null ? List.of() : Arrays.stream(arguments).map(this::shown).toList());
        try {
            var result = method.invoke(real, arguments);
            // A few have only the asynchronous form.
            if (result instanceof CompletableFuture<?> future) {
                result = future.get();
            }
            line.put("result", shown(result));
            print(line);
            unanswered.get(kind).remove(method.getName());
            return method.getReturnType() == CompletableFuture.class ? CompletableFuture.completedFuture(result) : result;
        } catch (InvocationTargetException | ExecutionException failure) {
            var cause = failure.getCause();
            line.put("error", cause.getClass().getSimpleName());
            if (cause instanceof PulsarAdminException refused) {
                line.put("status", refused.getStatusCode());
                line.put("reason", refused.getHttpError() == null ? refused.toString() : refused.getHttpError());
            } else {
                line.put("reason", cause.getMessage());
            }
            print(line);
            throw cause;
        }
    }

    private void print(Map<String, Object> line) throws Exception {
        if (!quiet) {
            lines.println(json.writeValueAsString(line));
        }
    }

    /** What is called in `call` leaves no lines. */
    <T> T quietly(Callable<T> call) throws Exception {
        quiet = true;
        try {
            return call.call();
        } finally {
            quiet = false;
        }
    }

    /** A value as JSON, with what Jackson cannot make of Pulsar's interfaces. */
    String text(Object value) throws Exception {
        return json.writeValueAsString(json.valueToTree(shown(value)));
    }

    private Object shown(Object value) {
        if (value instanceof MessageId id) {
            return id.toString();
        }
        if (value instanceof Message<?> message) {
            return shownMessage(message);
        }
        if (value instanceof List<?> list) {
            var all = new ArrayList<Object>();
            list.forEach(each -> all.add(shown(each)));
            return all;
        }
        if (value instanceof Map<?, ?> map) {
            var all = new TreeMap<String, Object>();
            map.forEach((key, each) -> all.put(String.valueOf(key), shown(each)));
            return all;
        }
        if (value == null || value instanceof java.util.Optional || value instanceof java.util.function.Function) {
            return String.valueOf(value);
        }
        return value;
    }

    private static Map<String, Object> shownMessage(Message<?> message) {
        var shown = new LinkedHashMap<String, Object>();
        shown.put("messageId", message.getMessageId().toString());
        shown.put("topic", message.getTopicName());
        shown.put("data", new String(message.getData(), StandardCharsets.UTF_8));
        shown.put("key", message.getKey());
        shown.put("properties", new TreeMap<>(message.getProperties()));
        shown.put("eventTime", message.getEventTime());
        shown.put("producerName", message.getProducerName());
        shown.put("sequenceId", message.getSequenceId());
        shown.put("published", message.getPublishTime() > 0);
        return shown;
    }

    void failed(String trace) throws Exception {
        lines.println(json.writeValueAsString(Map.of("section", section, "failed", trace)));
    }

    void unanswered() throws Exception {
        lines.println(json.writeValueAsString(Map.of("section", section, "unanswered", unanswered)));
    }
}
