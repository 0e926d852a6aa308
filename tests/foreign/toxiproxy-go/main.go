// Drive the control API at the address os.Args[1] with Toxiproxy's Go client. The upstream os.Args[2] echoes.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
)

var hello = []byte("hello")

func check(holds bool, seen any) {
	if !holds {
		panic(fmt.Sprint(seen))
	}
}

func value[T any](got T, err error) T {
	check(err == nil, err)
	return got
}

func must(err error) {
	check(err == nil, err)
}

// echoed is how many bytes come back before the end of the connection, or before it is silent for a while.
func echoed(conn net.Conn, patience time.Duration) int {
	value(conn.Write(hello))
	return read(conn, patience)
}

func read(conn net.Conn, patience time.Duration) int {
	must(conn.SetReadDeadline(time.Now().Add(patience)))
	n, _ := io.ReadFull(conn, make([]byte, len(hello)))
	return n
}

func main() {
	client := toxiproxy.NewClient(os.Args[1])
	proxy := value(client.CreateProxy("go", "127.0.0.1:0", os.Args[2]))
	check(len(value(client.Proxies())) == 1 && value(client.Proxy("go")).Enabled, proxy)
	fmt.Println("created")
	conn := value(net.Dial("tcp", proxy.Listen))
	check(echoed(conn, time.Minute) == len(hello), "no echo")
	fmt.Println("echoed")
	type attributes = toxiproxy.Attributes
	for _, each := range []struct {
		kind, stream string
		toxicity     float32
		attributes   attributes
	}{
		{"latency", "downstream", 1, attributes{"latency": 1, "jitter": 1}},
		{"bandwidth", "upstream", 1, attributes{"rate": 1000}},
		{"slow_close", "downstream", 1, attributes{"delay": 1}},
		{"slicer", "downstream", 1, attributes{"average_size": 2, "size_variation": 1, "delay": 1}},
		{"timeout", "downstream", 0.5, attributes{"timeout": 60000}},
		{"reset_peer", "upstream", 1, attributes{"timeout": 60000}},
		{"limit_data", "downstream", 1, attributes{"bytes": 1000000}},
	} {
		value(proxy.AddToxic(each.kind, each.kind, each.stream, each.toxicity, each.attributes))
	}
	toxics := value(proxy.Toxics())
	check(len(toxics) == 7, toxics)
	changed := value(proxy.UpdateToxic("latency", 0.25, attributes{"latency": 2}))
	check(changed.Toxicity == 0.25 && changed.Attributes["latency"] == 2.0 && changed.Attributes["jitter"] == 1.0, changed)
	fmt.Println("seven toxics")
	must(conn.Close())
	must(client.ResetState())
	check(len(value(proxy.Toxics())) == 0, "toxics stay")
	fmt.Println("reset")
	value(proxy.AddToxic("cut", "bandwidth", "downstream", 1, attributes{"rate": 0}))
	conn = value(net.Dial("tcp", proxy.Listen))
	check(echoed(conn, 100*time.Millisecond) == 0, "not cut")
	fmt.Println("cut")
	must(proxy.RemoveToxic("cut"))
	check(read(conn, time.Minute) == len(hello), "lost")
	fmt.Println("restored")
	must(conn.Close())
	value(proxy.AddToxic("limit", "limit_data", "downstream", 1, attributes{"bytes": 2}))
	conn = value(net.Dial("tcp", proxy.Listen))
	check(echoed(conn, time.Minute) == 2, "no limit")
	fmt.Println("limited")
	must(proxy.Disable())
	_, err := net.Dial("tcp", proxy.Listen)
	check(err != nil, "not disabled")
	fmt.Println("disabled")
	must(proxy.Enable())
	must(value(net.Dial("tcp", proxy.Listen)).Close())
	fmt.Println("enabled")
	populated := value(client.Populate([]toxiproxy.Proxy{{Name: "go", Listen: proxy.Listen, Upstream: os.Args[2], Enabled: true}}))
	check(len(populated) == 1, populated)
	must(proxy.Delete())
	check(len(value(client.Proxies())) == 0, "not deleted")
	fmt.Println("deleted")
}
