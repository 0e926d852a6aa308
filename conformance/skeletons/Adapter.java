import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An adapter: it lets the conformance kit of Pulsarium drive a client in Java.
 *
 * <p>The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong
 * on standard error. Add a function for each operation that the client has. docs/conformance.md lists the operations.
 * This program needs Java 17: `java Adapter.java`.
 */
public final class Adapter {
    /** An error of the client, of one of the kit's kinds, such as NotFound or Timeout. */
    static final class Refusal extends Exception {
        private static final long serialVersionUID = 1;
        final String kind;

        Refusal(String kind, String text) {
            super(text);
            this.kind = kind;
        }
    }

    /** Does a request, and returns the fields of ok, as JSON: "" or "\"ids\": [\"1:0\"]". */
    interface Operation {
        String run(String request) throws Exception;
    }

    /** Clients, producers, consumers, ... by the kit's handles. */
    static final Map<String, Object> THINGS = new ConcurrentHashMap<>();

    static final String ABOUT =
            "\"protocol\": 2, \"client\": \"My-Client\", \"version\": \"1.0\", \"topics\": [\"classic\"]";

    /** Why the client lacks an operation or option, as JSON: "send.delay": "no delayed messages". */
    static final String LACKS = "";

    static final Map<String, Operation> OPERATIONS = Map.of("open", Adapter::open, "close", Adapter::close);

    static String open(String request) {
        THINGS.put(text(request, "as"), text(request, "url")); // TODO: connect a client to the URL, and keep the client
        return "";
    }

    static String close(String request) throws Refusal {
        // TODO: close the client, producer or consumer
        if (THINGS.remove(text(request, "handle")) == null) { // the kit also asks for handles of nothing
            throw new Refusal("AlreadyClosed", "nothing is open as " + text(request, "handle"));
        }
        return "";
    }

    /** Returns a field of a request, or "". TODO: Java reads no JSON, so use a library such as Gson or Jackson. */
    static String text(String request, String name) {
        Matcher found = Pattern.compile("\"" + name + "\": (?:\"([^\"]*)\"|(\\d+))").matcher(request);
        return !found.find() ? "" : found.group(1) != null ? found.group(1) : found.group(2);
    }

    static String quoted(Object text) {
        String escaped = text.toString().replace("\\", "\\\\").replace("\"", "\\\"");
        return "\"" + escaped.replaceAll("\\p{Cntrl}", " ") + "\"";
    }

    /** Returns ok, unsupported or error. Every request is answered, whatever happens. */
    static String answer(String request) {
        String name = text(request, "do");
        if (name.equals("hello")) {
            String names = String.join(", ", OPERATIONS.keySet().stream().map(Adapter::quoted).toList());
            return "\"ok\": {" + ABOUT + ", \"operations\": [" + names + "], \"lacks\": {" + LACKS + "}}";
        } else if (!OPERATIONS.containsKey(name)) {
            return "\"unsupported\": " + quoted("no operation " + name);
        }
        try {
            return "\"ok\": {" + OPERATIONS.get(name).run(request) + "}";
        } catch (Throwable error) { // TODO: find the kind of the client's own errors
            String kind = error instanceof Refusal refusal ? refusal.kind : "Other";
            return "\"error\": {\"kind\": " + quoted(kind) + ", \"text\": " + quoted(error) + "}";
        }
    }

    /** Names what a request waits for: requests of one handle keep their order, and a receive holds up no other. */
    static String turn(String request) {
        List<String> names = List.of("as", "handle", "producer", "consumer", "reader", "view", "transaction", "client");
        String handle = names.stream().map(name -> text(request, name)).filter(each -> !each.isEmpty()).findFirst()
                .orElse("");
        return handle + (text(request, "do").startsWith("receive") ? " receive" : "");
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // a library may print
        ExecutorService workers = Executors.newCachedThreadPool();
        Map<String, CompletableFuture<Void>> last = new HashMap<>(); // by turn, the latest answer
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String request = line;
            CompletableFuture<Void> before = last.getOrDefault(turn(request), CompletableFuture.completedFuture(null));
            last.put(turn(request), before.thenRunAsync(
                    () -> out.println("{\"id\": " + text(request, "id") + ", " + answer(request) + "}"), workers));
        }
        System.exit(0); // the input has ended, and open clients do not matter any more
    }
}
