package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var compressions = map[string]pulsar.CompressionType{
	"NONE":   pulsar.NoCompression,
	"LZ4":    pulsar.LZ4,
	"ZLIB":   pulsar.ZLib,
	"ZSTD":   pulsar.ZSTD,
	"SNAPPY": pulsar.SNAPPY,
}

type arrival struct {
	consumer int
	topic    string
	payload  string
	id       string
}

func (a arrival) number() int {
	return value(strconv.Atoi(a.payload[:6]))
}

// matrix sends many messages through one way of publishing and consuming: nothing lost, doubled or out of order.
func matrix(env *environment) {
	compression, known := compressions[env.Compression]
	if !known {
		failf("no compression %s", env.Compression)
	}
	if env.Partitions > 1 {
		env.createPartitioned(env.Topic, env.Partitions)
	}
	consumers := []pulsar.Consumer{}
	for place := range env.Consumers {
		consumers = append(consumers, env.consumer(pulsar.ConsumerOptions{
			Type: subscriptionTypes[env.Subscription], Name: fmt.Sprintf("c%d", place),
		}))
	}
	producer := env.producer(pulsar.ProducerOptions{
		DisableBatching: !env.Batched, CompressionType: compression, MaxPendingMessages: env.Messages,
	})
	defer producer.Close()
	filler := strings.Repeat(" pulsarium", 19)
	sent := []string{}
	for number := range env.Messages {
		sent = append(sent, fmt.Sprintf("%06d%s", number, filler))
	}
	arrivals := collect(consumers, env.Messages, func() []pulsar.MessageID { return send(producer, sent) }, sent)
	if env.Subscription != "Shared" {
		inOrder(arrivals)
	}
	topics := map[string]bool{}
	for _, each := range arrivals {
		topics[each.topic] = true
	}
	equal("partitions", len(topics), env.Partitions)
	for _, consumer := range consumers {
		consumer.Close()
	}
	// What was acknowledged stays so for the next consumer.
	next := env.consumer(pulsar.ConsumerOptions{Type: subscriptionTypes[env.Subscription]})
	defer next.Close()
	nothingMore(next)
}

// collect receives on all consumers while publish runs, and checks that exactly what was sent arrived.
func collect(consumers []pulsar.Consumer, count int, publish func() []pulsar.MessageID, sent []string) []arrival {
	var total atomic.Int64
	var tasks sync.WaitGroup
	got := make([][]arrival, len(consumers))
	for place, consumer := range consumers {
		tasks.Add(1)
		go func() {
			defer tasks.Done()
			got[place] = receiveAll(consumer, place, &total, count)
		}()
	}
	ids := []string{}
	for _, id := range publish() {
		ids = append(ids, place(id))
	}
	tasks.Wait()
	arrivals := slices.Concat(got...)
	payloads, places := []string{}, []string{}
	for _, each := range arrivals {
		payloads = append(payloads, each.payload)
		places = append(places, each.id)
	}
	slices.Sort(payloads)
	slices.Sort(places)
	slices.Sort(ids)
	equal("number of messages", len(payloads), len(sent))
	equal("messages", payloads, sent)
	equal("message ids", places, ids)
	return arrivals
}

func receiveAll(consumer pulsar.Consumer, number int, total *atomic.Int64, count int) []arrival {
	arrivals := []arrival{}
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), quiet)
		message, err := consumer.Receive(ctx)
		cancel()
		if err == nil {
			total.Add(1)
			if err := consumer.Ack(message); err != nil {
				return arrivals
			}
			arrivals = append(arrivals, arrival{number, message.Topic(), string(message.Payload()), place(message.ID())})
		} else if total.Load() >= int64(count) || time.Now().After(end) {
			return arrivals
		}
	}
}

// place is a message id without what receipts and messages disagree on.
func place(id pulsar.MessageID) string {
	return fmt.Sprintf("%d:%d:%d:%d", id.LedgerID(), id.EntryID(), id.PartitionIdx(), max(id.BatchIdx(), 0))
}

func inOrder(arrivals []arrival) {
	last := map[string]arrival{}
	for _, each := range arrivals {
		before, seen := last[each.topic]
		if seen && before.number() >= each.number() {
			failf("out of order in %s: %d after %d", each.topic, each.number(), before.number())
		}
		if seen && before.consumer != each.consumer {
			failf("%s went to several consumers", each.topic)
		}
		last[each.topic] = each
	}
}
