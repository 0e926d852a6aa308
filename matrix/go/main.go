// The scenarios of the official Go client, a JSON object a line (see python/lines.py).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// cell is one scenario's request, and what it opened.
type cell struct {
	Scenario    string   `json:"scenario"`
	Topic       string   `json:"topic"`
	Namespace   string   `json:"namespace"`
	ServiceURL  string   `json:"service_url"`
	ServiceURLs []string `json:"service_urls"`
	HTTPURL     string   `json:"http_url"`
	TLSURL      string   `json:"tls_url"`
	PublicKey   string   `json:"public_key"`
	PrivateKey  string   `json:"private_key"`
	Authority   string   `json:"authority"`
	Token       string   `json:"token"`
	WrongToken  string   `json:"wrong_token"`

	client pulsar.Client
	opened []pulsar.Client
}

type answer struct {
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason"`
	Seconds float64 `json:"seconds"`
}

var (
	lines   = bufio.NewScanner(os.Stdin)
	answers = json.NewEncoder(os.Stdout)
	logger  = log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(os.Stderr, nil)))
)

func main() {
	for lines.Scan() {
		each := &cell{}
		if err := json.Unmarshal(lines.Bytes(), each); err != nil {
			panic(err)
		}
		if err := answers.Encode(each.run()); err != nil {
			panic(err)
		}
	}
}

func (c *cell) run() (result answer) {
	start := time.Now()
	defer func() {
		result.Seconds = time.Since(start).Seconds()
		if failed := recover(); failed != nil {
			result.Outcome, result.Reason = "fail", fmt.Sprint(failed)
			fmt.Fprintf(os.Stderr, "%v\n%s\n", failed, debug.Stack())
		}
		for _, client := range c.opened {
			client.Close()
		}
	}()
	c.client = c.open(pulsar.ClientOptions{URL: c.ServiceURL})
	scenarios[c.Scenario](c)
	return answer{Outcome: "pass"}
}

// open makes a further client, closed at the end.
func (c *cell) open(options pulsar.ClientOptions) pulsar.Client {
	options.Logger = logger
	options.OperationTimeout = 10 * time.Second
	client := value(pulsar.NewClient(options))
	c.opened = append(c.opened, client)
	return client
}

// administrate has the topic unloaded, compacted or terminated.
func (c *cell) administrate(action string) {
	must(answers.Encode(map[string]string{"do": action}))
	var got struct {
		Done bool `json:"done"`
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &got) != nil || !got.Done {
		failf("%s was refused", action)
	}
}

var scenarios = map[string]func(*cell){
	"produce-consume":       produceConsume,
	"batching":              batching,
	"compression-lz4":       func(c *cell) { compression(c, pulsar.LZ4) },
	"compression-zlib":      func(c *cell) { compression(c, pulsar.ZLib) },
	"compression-zstd":      func(c *cell) { compression(c, pulsar.ZSTD) },
	"compression-snappy":    func(c *cell) { compression(c, pulsar.SNAPPY) },
	"chunking":              chunking,
	"delayed":               delayed,
	"non-persistent":        nonPersistent,
	"message-index":         messageIndex,
	"encryption":            encryption,
	"key-shared":            keyShared,
	"shared-nack":           sharedNack,
	"redelivery-count":      redeliveryCount,
	"cumulative-ack":        cumulativeAck,
	"batch-index-ack":       batchIndexAck,
	"ack-receipt":           ackReceipt,
	"dead-letter":           deadLetter,
	"retry-letter":          retryLetter,
	"unsubscribe":           unsubscribe,
	"exclusive-busy":        exclusiveBusy,
	"failover":              failover,
	"shared":                shared,
	"partitioned":           partitioned,
	"pattern":               pattern,
	"multi-topics":          multiTopics,
	"unload":                unload,
	"brokers":               brokers,
	"http-lookup":           func(c *cell) { five(c, pulsar.ClientOptions{URL: c.HTTPURL}) },
	"token":                 token,
	"tls":                   overTLS,
	"zero-queue":            zeroQueue,
	"producer-name":         producerName,
	"exclusive-producer":    exclusiveProducer,
	"wait-for-exclusive":    waitForExclusive,
	"terminated":            terminated,
	"seek-id":               seekID,
	"seek-time":             seekTime,
	"reader":                reader,
	"has-message-available": hasMessageAvailable,
	"last-message-id":       lastMessageID,
	"compaction":            compaction,
	"compaction-batch":      compactionBatch,
	"table-view":            tableView,
	"deduplication":         deduplication,
	"transactions":          transactions,
	"transaction-ack":       transactionAck,
	"schema-string":         schemaString,
	"schema-json":           func(c *cell) { schemaRecord(c, pulsar.NewJSONSchema(definition, nil)) },
	"schema-avro":           func(c *cell) { schemaRecord(c, pulsar.NewAvroSchema(definition, nil)) },
	"schema-incompatible":   schemaIncompatible,
}
