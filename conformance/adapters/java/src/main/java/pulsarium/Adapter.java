package pulsarium;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.pulsar.client.api.PulsarClient;

/** The conformance kit's adapter for Pulsar's Java client of classic topics. */
public final class Adapter {
    /** An operation of the client. It adds what it returns to `ok`. */
    interface Operation {
        void run(Request request, JsonObject ok) throws Exception;
    }

    /** Says why the client cannot do what a request asks for. */
    @SuppressWarnings("serial")
    static final class Lack extends RuntimeException {
        Lack(String reason) {
            super(reason);
        }
    }

    private static final Map<String, String> KINDS = Map.ofEntries(
            Map.entry("NotFoundException", "NotFound"),
            Map.entry("TopicDoesNotExistException", "NotFound"),
            Map.entry("SubscriptionNotFoundException", "NotFound"),
            Map.entry("TransactionNotFoundException", "NotFound"),
            Map.entry("AuthenticationException", "Authentication"),
            Map.entry("GettingAuthenticationDataException", "Authentication"),
            Map.entry("AuthorizationException", "Authorization"),
            Map.entry("TimeoutException", "Timeout"),
            Map.entry("AlreadyClosedException", "AlreadyClosed"),
            Map.entry("ProducerBusyException", "ProducerBusy"),
            Map.entry("ProducerFencedException", "Fenced"),
            Map.entry("ConsumerBusyException", "ConsumerBusy"),
            Map.entry("IncompatibleSchemaException", "IncompatibleSchema"),
            Map.entry("TopicTerminatedException", "TopicTerminated"),
            Map.entry("ConnectException", "Connect"),
            Map.entry("NotConnectedException", "Connect"),
            Map.entry("ProducerQueueIsFullError", "ProducerQueueFull"),
            Map.entry("MemoryBufferIsFullError", "MemoryBufferFull"),
            Map.entry("TransactionConflictException", "TransactionConflict"),
            Map.entry("InvalidTxnStatusException", "TransactionConflict"),
            Map.entry("TransactionHasOperationFailedException", "TransactionConflict"),
            Map.entry("CryptoException", "Crypto"),
            Map.entry("InvalidConfigurationException", "InvalidConfiguration"),
            Map.entry("IllegalArgumentException", "InvalidConfiguration"),
            Map.entry("InvalidServiceURL", "InvalidServiceURL"),
            Map.entry("InterruptedException", "Interrupted"));

    private final PrintStream out;
    private final Map<String, Operation> operations = Operations.all();
    private final ExecutorService workers = Executors.newCachedThreadPool();
    private final Map<String, CompletableFuture<Void>> last = new HashMap<>();

    private Adapter(PrintStream out) {
        this.out = out;
    }

    /**
     * Answers a request after the earlier ones of the same handle. A pending `receive` holds up only other ones.
     */
    private void accept(Request request) {
        String name = request.text("do");
        CompletableFuture<Void> earlier = last.getOrDefault(request.handle(), CompletableFuture.completedFuture(null));
        last.put(request.handle(), earlier.thenRunAsync(() -> answer(name, request), workers));
    }

    private void answer(String name, Request request) {
        JsonObject line = new JsonObject();
        line.add("id", request.get("id"));
        Operation operation = operations.get(name);
        if (name.equals("hello")) {
            line.add("ok", hello());
        } else if (operation == null) {
            line.addProperty("unsupported", "no operation " + name);
        } else {
            try {
                JsonObject ok = new JsonObject();
                operation.run(request, ok);
                request.allRead();
                line.add("ok", ok);
            } catch (Lack lack) {
                line.addProperty("unsupported", lack.getMessage());
            } catch (NoSuchMethodError | NoClassDefFoundError | NoSuchFieldError missing) {
                line.addProperty("unsupported", "this release has no " + missing.getMessage());
            } catch (Throwable thrown) {
                Throwable error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
                JsonObject told = new JsonObject();
                told.addProperty("kind", kind(error));
                told.addProperty("text", String.valueOf(error));
                line.add("error", told);
            }
        }
        synchronized (out) {
            out.println(line);
        }
    }

    private JsonObject hello() {
        JsonObject about = JsonParser.parseString("{'protocol': 2, 'client': 'Pulsar-Java', 'topics': ['classic'],"
                + " 'lacks': {'transaction.scalable': 'the client has no scalable topics'}}").getAsJsonObject();
        if (!Source.HAS_INDEX) {
            about.getAsJsonObject("lacks").addProperty("receive.index", "messages have no index");
        }
        about.addProperty("version", String.valueOf(PulsarClient.class.getPackage().getImplementationVersion()));
        about.add("operations", Operations.GSON.toJsonTree(operations.keySet()));
        return about;
    }

    private static String kind(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            String found = KINDS.get(each.getClass().getSimpleName());
            if (found != null) {
                return found;
            }
        }
        return "Other";
    }

    public static void main(String[] arguments) throws Exception {
        Adapter adapter = new Adapter(new PrintStream(System.out, true, StandardCharsets.UTF_8));
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonElement request = JsonParser.parseString(line);
            adapter.accept(new Request(request.getAsJsonObject()));
        }
        Runtime.getRuntime().halt(0); // open clients do not matter any more
    }
}
