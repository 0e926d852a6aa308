import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/** Run an application once, or again and again for `pulsarium explore --persistent`. */
class Runs {
    interface Application {
        /** Run with clients from `clients`, which gives a new one each time. */
        void run(Clients clients, boolean mended) throws Exception;
    }

    interface Clients {
        PulsarClient open() throws Exception;
    }

    /** An invariant of the application does not hold. */
    static class Broken extends Exception {
        Broken(String reason) {
            super(reason);
        }
    }

    /** Repeat a call that may fail while the broker is not ready. */
    static <T> T again(Callable<T> call) throws Exception {
        for (int attempt = 0; attempt < 9; attempt++) {
            try {
                return call.call();
            } catch (PulsarClientException | ExecutionException notReady) {
                // the next attempt may find the broker ready
            }
        }
        return call.call();
    }

    static void main(String[] args, Application application) throws Exception {
        boolean mended = List.of(args).contains("--mended");
        if (!List.of(args).contains("--persistent")) {
            String reason = run(application, System.getenv().getOrDefault("PULSAR_SERVICE_URL", "pulsar://localhost:6650"), mended);
            if (reason != null) System.err.println(reason);
            System.exit(reason == null ? 0 : 1);
        }
        var url = Pattern.compile("\"serviceUrl\": *\"([^\"]*)\"");
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var found = url.matcher(line);
            found.find();
            String reason = run(application, found.group(1), mended);
            System.out.println(reason == null ? "ok" : "failed " + reason);
        }
        System.exit(0);
    }

    /** Return the reason why the application failed, or null. */
    private static String run(Application application, String url, boolean mended) {
        List<PulsarClient> opened = new ArrayList<>();
        Clients clients = () -> {
            var client = again(() -> PulsarClient.builder().serviceUrl(url).enableTransaction(true)
                    .startingBackoffInterval(500, TimeUnit.MILLISECONDS).maxBackoffInterval(1, TimeUnit.SECONDS)
                    .operationTimeout(3, TimeUnit.SECONDS).build());
            opened.add(client);
            return client;
        };
        try {
            application.run(clients, mended);
            return null;
        } catch (Broken broken) {
            return broken.getMessage();
        } catch (Exception error) {
            error.printStackTrace();
            return error.toString().replace('\n', ' ');
        } finally {
            opened.forEach(PulsarClient::closeAsync); // to wait for the threads of each takes two seconds
        }
    }
}
