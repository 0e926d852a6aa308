package pulsarium.toxiproxy;

import eu.rekawek.toxiproxy.Proxy;
import eu.rekawek.toxiproxy.ToxiproxyClient;
import eu.rekawek.toxiproxy.model.Toxic;
import eu.rekawek.toxiproxy.model.ToxicDirection;
import eu.rekawek.toxiproxy.model.toxic.Latency;
import java.io.IOException;
import java.net.ConnectException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.List;
import java.util.TreeSet;

/** Drive the control API at port args[0] with Toxiproxy's Java client. The upstream args[1] echoes. */
public final class Main {
    private static final byte[] HELLO = "hello".getBytes();

    private static void done(String step) {
        System.out.println(step);
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }

    private static Socket dial(String listen) throws IOException {
        int colon = listen.lastIndexOf(':');
        return new Socket(listen.substring(0, colon), Integer.parseInt(listen.substring(colon + 1)));
    }

    private static int echoed(Socket socket) throws IOException {
        socket.getOutputStream().write(HELLO);
        return socket.getInputStream().readNBytes(HELLO.length).length;
    }

    public static void main(String[] args) throws IOException {
        ToxiproxyClient client = new ToxiproxyClient("127.0.0.1", Integer.parseInt(args[0]));
        check(client.version().contains("2."), client.version());
        Proxy proxy = client.createProxy("java", "127.0.0.1:0", args[1]);
        check(client.getProxies().size() == 1 && client.getProxy("java").isEnabled(), client.getProxies());
        done("created");
        try (Socket socket = dial(proxy.getListen())) {
            check(echoed(socket) == HELLO.length, "no echo");
            done("echoed");
            ToxicDirection down = ToxicDirection.DOWNSTREAM;
            proxy.toxics().latency("latency", down, 1).setJitter(1);
            proxy.toxics().bandwidth("bandwidth", ToxicDirection.UPSTREAM, 1000);
            proxy.toxics().slowClose("slow_close", down, 1);
            proxy.toxics().slicer("slicer", down, 2, 1);
            proxy.toxics().timeout("timeout", down, 60_000).setToxicity(0.5f);
            proxy.toxics().resetPeer("reset_peer", ToxicDirection.UPSTREAM, 60_000);
            proxy.toxics().limitData("limit_data", down, 1_000_000);
            List<? extends Toxic> all = proxy.toxics().getAll();
            TreeSet<String> names = new TreeSet<>();
            all.forEach(toxic -> names.add(toxic.getName()));
            check(names.size() == 7, names);
            Latency latency = proxy.toxics().get("latency", Latency.class);
            check(latency.getLatency() == 1 && latency.getJitter() == 1, latency);
            check(proxy.toxics().get("timeout").getToxicity() == 0.5f, all);
            done("seven toxics");
        }
        client.reset();
        check(proxy.toxics().getAll().isEmpty(), proxy.toxics().getAll());
        done("reset");
        proxy.toxics().bandwidth("cut", ToxicDirection.DOWNSTREAM, 0);
        try (Socket socket = dial(proxy.getListen())) {
            socket.setSoTimeout(100);
            try {
                check(echoed(socket) < 0, "not cut");
            } catch (SocketTimeoutException expected) {
                done("cut");
            }
            socket.setSoTimeout(0);
            proxy.toxics().get("cut").remove();
            check(socket.getInputStream().readNBytes(HELLO.length).length == HELLO.length, "lost");
            done("restored");
        }
        proxy.toxics().limitData("limit", ToxicDirection.DOWNSTREAM, 2);
        try (Socket socket = dial(proxy.getListen())) {
            check(echoed(socket) == 2, "no limit");
            done("limited");
        }
        proxy.disable();
        try {
            dial(proxy.getListen()).close();
            check(false, "not disabled");
        } catch (ConnectException expected) {
            done("disabled");
        }
        proxy.enable();
        dial(proxy.getListen()).close();
        done("enabled");
        proxy.delete();
        check(client.getProxies().isEmpty(), client.getProxies());
        done("deleted");
    }

    private Main() {}
}
