package org.apache.pulsar.client.cli;

import java.util.Properties;

/** Opens what the package keeps to itself. */
public final class ClientRun {
    private ClientRun() {
    }

    public static int run(Properties properties, String[] arguments) {
        return new PulsarClientTool(properties).run(arguments);
    }
}
