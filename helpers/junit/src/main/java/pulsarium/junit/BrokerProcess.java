package pulsarium.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.stream.Stream;

/** A broker as a process: the command, or a container of the image. */
final class BrokerProcess {
    private static final long START_LIMIT_MS = 60_000;
    private static final List<String> ENGINES = List.of("docker", "podman");
    private static final List<String> SERVE = List.of("serve", "--with-parent", "--log-level", "warning");

    final String serviceUrl;
    final String adminUrl;
    private final Process process;

    private BrokerProcess(Process process, String[] ready) {
        this.process = process;
        serviceUrl = ready[2];
        adminUrl = ready[3];
    }

    /** Starts a broker, and returns once it has printed "pulsarium ready" and the URLs. */
    static BrokerProcess start(List<String> options) throws IOException {
        var command = new ArrayList<>(command());
        command.addAll(options);
        // The broker ends when the pipe on its standard input does: with this process at the latest.
        var process = new ProcessBuilder(command).start();
        var log = new StringBuffer();
        var errors = inBackground(process.getErrorStream(), log);
        var late = new Timer(true);
        late.schedule(new TimerTask() {
            @Override
            public void run() {
                process.destroyForcibly();
            }
        }, START_LIMIT_MS);
        try {
            var lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("pulsarium ready ")) {
                    inBackground(process.getInputStream(), new StringBuffer());
                    // A broker in a container listens on 0.0.0.0.
                    return new BrokerProcess(process, line.replace("0.0.0.0", "127.0.0.1").split(" "));
                }
            }
            errors.join(); // its last line says why
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } finally {
            late.cancel();
        }
        throw new IOException(String.join(" ", command) + " ended before it served, or was not ready in a minute:\n" + log
                + advice(command.get(0)));
    }

    /** Returns what to do when a program serves no broker. */
    private static String advice(String program) {
        return !ENGINES.contains(program) ? "" : "a container needs the image: type `" + program + " build -t pulsarium .` "
                + "in a checkout of Pulsarium, or put the command pulsarium on the PATH";
    }

    /** Ends the broker, and returns when it has ended. */
    void stop() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor();
    }

    /** Returns "pulsarium" or the command that PULSARIUM names, else that of a container. */
    private static List<String> command() throws IOException {
        var named = System.getenv("PULSARIUM");
        var command = List.of((named == null ? "pulsarium" : named).split(" "));
        if (isThere(command.get(0))) {
            return joined(command, SERVE, List.of("--port", "0", "--http-port", "0"));
        }
        if (named != null) {
            throw new IOException("PULSARIUM names " + named + ", which is not a command: correct or unset the variable");
        }
        for (var engine : ENGINES) {
            if (isThere(engine)) {
                return container(engine);
            }
        }
        throw new IOException("no broker can start: put the command pulsarium on the PATH, or name it in PULSARIUM; "
                + "or install docker or podman, with the image pulsarium");
    }

    /** Returns the command of a container with the same ports inside and outside, as clients are told them. */
    private static List<String> container(String engine) throws IOException {
        var image = System.getenv().getOrDefault("PULSARIUM_IMAGE", "pulsarium");
        var port = freePort();
        var httpPort = freePort();
        return joined(
                List.of(engine, "run", "--rm", "--interactive"),
                List.of("--publish", "127.0.0.1:" + port + ":" + port),
                List.of("--publish", "127.0.0.1:" + httpPort + ":" + httpPort, image, "pulsarium"),
                SERVE,
                List.of("--host", "0.0.0.0", "--set", "advertisedAddress=127.0.0.1"),
                List.of("--port", port, "--http-port", httpPort));
    }

    @SafeVarargs
    private static List<String> joined(List<String>... parts) {
        return Stream.of(parts).flatMap(List::stream).toList();
    }

    private static String freePort() throws IOException {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return String.valueOf(socket.getLocalPort());
        }
    }

    private static boolean isThere(String program) {
        if (program.contains("/")) {
            return Files.isExecutable(Path.of(program));
        }
        var folders = System.getenv().getOrDefault("PATH", "").split(java.io.File.pathSeparator);
        return Stream.of(folders).anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
    }

    private static Thread inBackground(InputStream output, StringBuffer log) {
        var thread = new Thread(() -> {
            try (var lines = new BufferedReader(new InputStreamReader(output, StandardCharsets.UTF_8))) {
                lines.lines().forEach(line -> log.append(line).append('\n'));
            } catch (IOException | java.io.UncheckedIOException error) {
                log.append(error);
            }
        }, "pulsarium-output");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
