package pulsarium.matrix;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Runs scenarios of the official Java client, a JSON object a line (see python/lines.py). */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Output of the client itself must not mix with the answers.
        System.setOut(System.err);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Scenario> scenarios = new HashMap<>();
        Messages.register(scenarios);
        Acknowledging.register(scenarios);
        Topics.register(scenarios);
        Reading.register(scenarios);
        Transactions.register(scenarios);
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var request = JsonParser.parseString(line).getAsJsonObject();
            answers.println(new Gson().toJson(run(scenarios, new Cell(request, lines, answers))));
        }
        // Some threads of clients end too late.
        System.exit(0);
    }

    private static JsonObject run(Map<String, Scenario> scenarios, Cell cell) {
        var answer = new JsonObject();
        long start = System.nanoTime();
        try {
            scenarios.get(cell.text("scenario")).run(cell);
            answer.addProperty("outcome", "pass");
        } catch (Exception | AssertionError failure) {
            failure.printStackTrace();
            answer.addProperty("outcome", "fail");
            answer.addProperty("reason", failure instanceof AssertionError ? failure.getMessage() : failure.toString());
        } finally {
            cell.close();
        }
        answer.addProperty("seconds", (System.nanoTime() - start) / 1e9);
        return answer;
    }

    /** A scenario, which throws when a client does not behave as expected. */
    @FunctionalInterface
    interface Scenario {
        void run(Cell cell) throws Exception;
    }
}
