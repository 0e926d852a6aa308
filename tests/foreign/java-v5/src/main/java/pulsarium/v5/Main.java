package pulsarium.v5;

import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Runs each case and prints a line for it: the name, and after a tab the failure, or nothing. */
public final class Main {
    private static final int SECONDS = 90;

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases(arguments[0], arguments[1]);
        for (Map.Entry<String, Cases.Case> each : cases.all().entrySet()) {
            System.out.println(each.getKey() + "\t" + failureOf(each.getValue()));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String failureOf(Cases.Case one) {
        ExecutorService executor = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        try {
            executor.submit(() -> {
                one.run();
                return null;
            }).get(SECONDS, TimeUnit.SECONDS);
            return "";
        } catch (Exception failure) {
            Throwable cause = failure;
            while (cause.getCause() != null && cause.getCause() != cause) {
                cause = cause.getCause();
            }
            return cause.toString().replace('\n', ' ');
        }
    }

    private Main() {}
}
