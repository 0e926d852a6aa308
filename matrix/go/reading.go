package main

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const definition = `{"type":"record","name":"Person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int"}]}`

type person struct {
	Name string `json:"name" avro:"name"`
	Age  int    `json:"age" avro:"age"`
}

func seekID(c *cell) {
	consumer := c.exclusive()
	ids := send(c.single(), texts(0, 10))
	equal(consume(consumer, 10), texts(0, 10))
	must(consumer.Seek(ids[4]))
	first := consume(consumer, 1)[0]
	that(first == "a0004" || first == "a0005", first+" came first")
	number := value(strconv.Atoi(first[1:]))
	equal(consume(consumer, 9-number), texts(number+1, 10))
}

func seekTime(c *cell) {
	consumer, producer := c.exclusive(), c.single()
	send(producer, texts(0, 5))
	time.Sleep(20 * time.Millisecond)
	moment := time.Now()
	send(producer, texts(5, 10))
	equal(consume(consumer, 10), texts(0, 10))
	must(consumer.SeekByTime(moment))
	equal(consume(consumer, 5), texts(5, 10))
	nothingMore(consumer)
}

func (c *cell) reading(start pulsar.MessageID) pulsar.Reader {
	return value(c.client.CreateReader(pulsar.ReaderOptions{Topic: c.Topic, StartMessageID: start}))
}

func next(reader pulsar.Reader, count int) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got := []string{}
	for range count {
		got = append(got, text(value(reader.Next(ctx))))
	}
	return got
}

func reader(c *cell) {
	ids := send(c.single(), texts(0, 10))
	equal(next(c.reading(pulsar.EarliestMessageID()), 10), texts(0, 10))
	equal(next(c.reading(ids[4]), 5), texts(5, 10))
}

func hasMessageAvailable(c *cell) {
	producer := c.single()
	send(producer, texts(0, 3))
	reading := c.reading(pulsar.EarliestMessageID())
	for _, wanted := range texts(0, 3) {
		that(reading.HasNext(), "false at the beginning")
		equal(next(reading, 1), []string{wanted})
	}
	that(!reading.HasNext(), "true at the end")
	send(producer, texts(3, 4))
	that(reading.HasNext(), "false after one more")
}

func lastMessageID(c *cell) {
	consumer := c.exclusive()
	wanted := send(c.single(), texts(0, 5))[4]
	last := value(consumer.GetLastMessageIDs())[0]
	equal([]int64{last.LedgerID(), last.EntryID()}, []int64{wanted.LedgerID(), wanted.EntryID()})
}

func compaction(c *cell) {
	// The subscription must exist first, so that compaction retains its messages.
	c.consumer(pulsar.ConsumerOptions{ReadCompacted: true}).Close()
	producer := c.single()
	for _, version := range []string{"1", "2"} {
		for _, key := range []string{"a", "b", "c"} {
			sendOne(producer, &pulsar.ProducerMessage{Payload: []byte(key + version), Key: key})
		}
	}
	c.administrate("compact")
	consumer := c.consumer(pulsar.ConsumerOptions{ReadCompacted: true})
	equal(consume(consumer, 3), []string{"a2", "b2", "c2"})
	nothingMore(consumer)
}

func compactionBatch(c *cell) {
	c.consumer(pulsar.ConsumerOptions{ReadCompacted: true}).Close()
	producer := c.batches()
	for number, text := range texts(0, 10) {
		message := &pulsar.ProducerMessage{Payload: []byte(text), Key: "key " + strconv.Itoa(number%5)}
		producer.SendAsync(context.Background(), message, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			must(err)
		})
	}
	must(producer.FlushWithCtx(context.Background()))
	c.administrate("compact")
	consumer := c.consumer(pulsar.ConsumerOptions{ReadCompacted: true})
	equal(consume(consumer, 5), texts(5, 10))
	nothingMore(consumer)
}

func tableView(c *cell) {
	schema := pulsar.NewStringSchema(nil)
	producer := c.producer(pulsar.ProducerOptions{Schema: schema, BatchingMaxMessages: 10})
	for _, each := range [][2]string{{"a", "1"}, {"b", "2"}, {"a", "3"}} {
		sendOne(producer, &pulsar.ProducerMessage{Key: each[0], Value: each[1]})
	}
	var text *string
	view := value(c.client.CreateTableView(pulsar.TableViewOptions{
		Topic: c.Topic, Schema: schema, SchemaValueType: reflect.TypeOf(text),
	}))
	defer view.Close()
	of := func(key string) string { return *view.Get(key).(*string) }
	equal(of("a")+of("b"), "32")
	sendOne(producer, &pulsar.ProducerMessage{Key: "b", Value: "4"})
	for end := time.Now().Add(patience); of("b") != "4" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	equal(of("b"), "4")
}

func deduplication(c *cell) {
	consumer := c.exclusive()
	for start := range 2 {
		producer := c.producer(pulsar.ProducerOptions{Name: "p"})
		for number := start; number < start+3; number++ {
			sequence := int64(number)
			sendOne(producer, &pulsar.ProducerMessage{Payload: []byte(texts(number, number+1)[0]), SequenceID: &sequence})
		}
		producer.Close()
	}
	equal(consume(consumer, 4), texts(0, 4))
	nothingMore(consumer)
}

// transactional: the client is one with transactions.
func (c *cell) transactional() {
	c.client = c.open(pulsar.ClientOptions{URL: c.ServiceURL, EnableTransaction: true})
}

func (c *cell) begin() pulsar.Transaction {
	return value(c.client.NewTransaction(time.Minute))
}

func end(transaction pulsar.Transaction, commits bool) {
	if commits {
		must(transaction.Commit(context.Background()))
	} else {
		must(transaction.Abort(context.Background()))
	}
}

func transactions(c *cell) {
	c.transactional()
	consumer, producer := c.exclusive(), c.single()
	for _, each := range []string{"dropped", "kept"} {
		transaction := c.begin()
		sendOne(producer, &pulsar.ProducerMessage{Payload: []byte(each), Transaction: transaction})
		end(transaction, each == "kept")
	}
	equal(consume(consumer, 1), []string{"kept"})
	nothingMore(consumer)
}

func transactionAck(c *cell) {
	c.transactional()
	consumer := c.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	send(c.single(), []string{"again", "done"})
	for _, message := range receive(consumer, 2) {
		transaction := c.begin()
		must(consumer.AckWithTxn(message, transaction))
		end(transaction, text(message) == "done")
	}
	equal(consume(consumer, 1), []string{"again"})
	nothingMore(consumer)
}

func schemaString(c *cell) {
	schema := pulsar.NewStringSchema(nil)
	consumer := c.consumer(pulsar.ConsumerOptions{Schema: schema})
	sendOne(c.producer(pulsar.ProducerOptions{Schema: schema, BatchingMaxMessages: 10}), &pulsar.ProducerMessage{Value: "grüße"})
	message := receive(consumer, 1)[0]
	var got *string
	must(message.GetSchemaValue(&got))
	equal(*got, "grüße")
	equal(message.SchemaVersion(), make([]byte, 8))
}

func schemaRecord(c *cell, schema pulsar.Schema) {
	consumer := c.consumer(pulsar.ConsumerOptions{Schema: schema})
	sendOne(c.producer(pulsar.ProducerOptions{Schema: schema, BatchingMaxMessages: 10}), &pulsar.ProducerMessage{Value: person{"Ada", 36}})
	message := receive(consumer, 1)[0]
	var got person
	must(message.GetSchemaValue(&got))
	equal(got, person{"Ada", 36})
	equal(message.SchemaVersion(), make([]byte, 8))
}

func schemaIncompatible(c *cell) {
	json := pulsar.NewJSONSchema(definition, nil)
	sendOne(c.producer(pulsar.ProducerOptions{Schema: json}), &pulsar.ProducerMessage{Value: person{"Ada", 36}})
	_, err := c.tryProducer(pulsar.ProducerOptions{Schema: pulsar.NewStringSchema(nil)})
	refused("another schema", err)
}
