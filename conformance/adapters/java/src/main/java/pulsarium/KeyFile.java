package pulsarium;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;

/** Reads the file of a key: the public key of a producer, or the private one of a consumer. */
record KeyFile(String path) implements CryptoKeyReader {
    @Override
    public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
        return read();
    }

    @Override
    public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
        return read();
    }

    private EncryptionKeyInfo read() {
        try {
            return new EncryptionKeyInfo(Files.readAllBytes(Path.of(path)), Map.of());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
