package pulsarium.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** A broker with its clients and its HTTP port. */
final class Broker implements CloseableResource, AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    final String serviceUrl;
    final String adminUrl;
    private final BrokerProcess process; // null for a broker that runs already
    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .proxy(ProxySelector.of(null))
            .build();
    private PulsarClient client;
    private PulsarAdmin admin;

    private Broker(String serviceUrl, String adminUrl, BrokerProcess process) {
        this.serviceUrl = serviceUrl;
        this.adminUrl = adminUrl;
        this.process = process;
    }

    /** Returns the broker that the environment names, or starts one. */
    static Broker start(List<String> options) {
        var serviceUrl = System.getenv("PULSARIUM_SERVICE_URL");
        var adminUrl = System.getenv("PULSARIUM_ADMIN_URL");
        if (options.isEmpty() && serviceUrl != null && adminUrl != null) {
            return new Broker(serviceUrl, adminUrl, null);
        }
        try {
            var process = BrokerProcess.start(options);
            return new Broker(process.serviceUrl, process.adminUrl, process);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized PulsarClient client() {
        try {
            if (client == null) {
                client = PulsarClient.builder().serviceUrl(serviceUrl).build();
            }
            return client;
        } catch (PulsarClientException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized PulsarAdmin admin() {
        try {
            if (admin == null) {
                admin = PulsarAdmin.builder().serviceHttpUrl(adminUrl).build();
            }
            return admin;
        } catch (PulsarClientException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Sends a request, and returns the JSON of its answer. Throws for a refusal. */
    JsonNode call(String method, String path, Object body) {
        try {
            var content = body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(JSON.writeValueAsString(body));
            var request = HttpRequest.newBuilder(URI.create(adminUrl + path))
                    .header("Content-Type", "application/json")
                    .method(method, content)
                    .build();
            var answer = http.send(request, BodyHandlers.ofString());
            var gone = method.equals("DELETE") && answer.statusCode() == 404;
            if (answer.statusCode() >= 400 && !gone) {
                throw new IllegalStateException(method + " " + path + ": status " + answer.statusCode() + ": " + answer.body());
            }
            return JSON.readTree(answer.body());
        } catch (IOException error) {
            throw new UncheckedIOException("no broker answers at " + adminUrl, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted in " + method + " " + path, error);
        }
    }

    @Override
    public void close() throws Exception {
        if (client != null) {
            client.close();
        }
        if (admin != null) {
            admin.close();
        }
        if (process != null) {
            process.stop();
        }
    }
}
