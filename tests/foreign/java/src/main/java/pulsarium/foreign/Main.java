package pulsarium.foreign;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * One JVM for many scenarios: each line on stdin is a JSON object with "scenario" and its arguments, each line on
 * stdout the result. Arguments of the program: the broker's service URL and its admin URL.
 */
public final class Main {
    private static final Gson GSON = new Gson();

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        var results = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Whatever else wants to print must not end up among the results.
        System.setOut(System.err);
        var scenarios = scenarios();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var request = JsonParser.parseString(line).getAsJsonObject();
            var context = new Context(client, arguments[0], arguments[1], request, new JsonObject());
            results.println(GSON.toJson(run(scenarios, context)));
        }
        // Not client.close(): its threads take seconds to end, and the process ends here anyway.
        System.exit(0);
    }

    private static Map<String, Scenario> scenarios() {
        var all = new TreeMap<String, Scenario>();
        all.put("matrix", Matrix::run);
        Consumers.register(all);
        Interop.register(all);
        KeyShared.register(all);
        BatchIndex.register(all);
        Letters.register(all);
        Deduplication.register(all);
        Encryption.register(all);
        Compacted.register(all);
        Schemas.register(all);
        Transactions.register(all);
        Transform.register(all);
        return all;
    }

    private static JsonObject run(Map<String, Scenario> scenarios, Context context) {
        var name = context.text("scenario");
        var result = context.told();
        result.addProperty("scenario", name);
        var start = System.nanoTime();
        try {
            if (name.equals("list")) {
                result.add("scenarios", GSON.toJsonTree(scenarios.keySet()));
            } else if (scenarios.containsKey(name)) {
                System.err.println("--- " + name + " on " + context.topic());
                scenarios.get(name).run(context);
            } else {
                throw new IllegalArgumentException("no scenario " + name);
            }
            result.addProperty("ok", true);
        } catch (Exception | AssertionError failure) {
            var trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace));
            result.addProperty("ok", false);
            result.addProperty("error", trace.toString());
        }
        result.addProperty("seconds", (System.nanoTime() - start) / 1e9);
        return result;
    }
}
