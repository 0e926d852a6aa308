package org.apache.pulsar.admin.cli;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Properties;
import java.util.logging.LogManager;
import java.util.regex.Pattern;
import org.apache.pulsar.client.cli.ClientRun;

/**
 * Runs pulsar-admin and pulsar-client many times in one JVM. Argument: a client.conf. Each line on stdin is a command as
 * a shell has it, with '...' around what has blanks in it, or "sleep" and milliseconds; each line on stdout tells as
 * JSON what came of it.
 *
 * In this package because only here the tool can be told not to end the JVM.
 */
public final class Main {
    private static final Pattern WORD = Pattern.compile("'([^']*)'|(\\S+)");
    /** What the tool says where it may not end the JVM. */
    private static final Pattern EXIT = Pattern.compile("(?m)^Exit code is .*\\R?");

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        var results = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var log = System.err;
        var properties = new Properties();
        try (var file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        // Netty complains there about the many clients of one JVM.
        LogManager.getLogManager().reset();
        PulsarAdminTool.setAllowSystemExit(false);
        var json = new ObjectMapper();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var out = new ByteArrayOutputStream();
            var error = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(error, true, StandardCharsets.UTF_8));
            var result = new LinkedHashMap<String, Object>();
            result.put("command", line);
            result.put("code", run(words(line), arguments[0], properties));
            System.out.flush();
            System.err.flush();
            result.put("stdout", EXIT.matcher(out.toString(StandardCharsets.UTF_8)).replaceAll(""));
            result.put("stderr", error.toString(StandardCharsets.UTF_8));
            results.println(json.writeValueAsString(result));
            System.setErr(log);
        }
        System.exit(0);
    }

    private static int run(List<String> words, String conf, Properties properties) throws Exception {
        if (words.get(0).equals("sleep")) {
            Thread.sleep(Long.parseLong(words.get(1)));
            return 0;
        }
        var rest = words.subList(1, words.size());
        if (words.get(0).equals("pulsar-client")) {
            return ClientRun.run(properties, rest.toArray(String[]::new));
        }
        PulsarAdminTool.resetLastExitCode();
        var all = new ArrayList<>(Arrays.asList(conf));
        all.addAll(rest);
        PulsarAdminTool.main(all.toArray(String[]::new));
        return PulsarAdminTool.getLastExitCode();
    }

    private static List<String> words(String line) {
        return WORD.matcher(line).results().map(found -> found.group(1) != null ? found.group(1) : found.group(2)).toList();
    }
}
