package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker for the tests of one class, on free ports, in memory. Use it as a static field:
 *
 * <pre>@RegisterExtension
 * static final PulsariumExtension BROKER = new PulsariumExtension();</pre>
 *
 * The environment variable PULSARIUM names the command when it is not "pulsarium".
 */
public final class PulsariumExtension implements BeforeAllCallback, AfterAllCallback {
    private static final int START_SECONDS = 30;

    private final List<String> options;
    private Process process;
    private Path folder;
    private PulsarClient client;
    private PulsarAdmin admin;

    /** `options` of "pulsarium serve" beside the ports, such as "--set", "allowAutoTopicCreation=false". */
    public PulsariumExtension(String... options) {
        this.options = List.of(options);
    }

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        folder = Files.createTempDirectory("pulsarium");
        var ready = folder.resolve("ready.json");
        var command = new ArrayList<>(List.of(System.getenv().getOrDefault("PULSARIUM", "pulsarium").split(" ")));
        command.addAll(List.of("serve", "--port", "0", "--http-port", "0", "--ready-file", ready.toString()));
        command.add("--with-parent"); // a killed test run leaves no broker
        command.addAll(options);
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log()).start();
        var urls = urls(ready);
        client = PulsarClient.builder().serviceUrl(urls.get("service_url").asText()).build();
        admin = PulsarAdmin.builder().serviceHttpUrl(urls.get("admin_url").asText()).build();
    }

    /** The file is there, and whole, once the broker serves. */
    private JsonNode urls(Path ready) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
        while (!Files.exists(ready)) {
            if (System.nanoTime() > end || process.waitFor(20, TimeUnit.MILLISECONDS)) {
                process.destroy();
                throw new IllegalStateException("Pulsarium did not start:\n" + Files.readString(log().toPath()));
            }
        }
        return new ObjectMapper().readTree(ready.toFile());
    }

    private File log() {
        return folder.resolve("broker.log").toFile();
    }

    public PulsarClient client() {
        return client;
    }

    public PulsarAdmin admin() {
        return admin;
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        client.close();
        admin.close();
        process.destroy();
        process.waitFor();
        for (var name : List.of("ready.json", "broker.log")) {
            Files.deleteIfExists(folder.resolve(name));
        }
        Files.delete(folder);
    }
}
