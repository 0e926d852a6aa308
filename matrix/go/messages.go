package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
)

func produceConsume(c *cell) {
	consumer := c.exclusive()
	producer := c.single()
	for _, each := range texts(0, 10) {
		sendOne(producer, &pulsar.ProducerMessage{
			Payload: []byte(each), Key: "k", Properties: map[string]string{"p": "v"},
		})
	}
	messages := receive(consumer, 10)
	equal(textsOf(messages), texts(0, 10))
	for _, message := range messages {
		equal(message.Key()+message.Properties()["p"], "kv")
		must(consumer.Ack(message))
	}
	consumer.Close()
	nothingMore(c.exclusive())
}

func batching(c *cell) {
	consumer := c.exclusive()
	send(c.batches(), texts(0, 10))
	messages := receive(consumer, 10)
	equal(textsOf(messages), texts(0, 10))
	for place, message := range messages {
		equal(message.ID().EntryID(), messages[0].ID().EntryID())
		equal(message.ID().BatchIdx(), int32(place))
	}
}

func compression(c *cell, kind pulsar.CompressionType) {
	consumer := c.exclusive()
	sent := []string{}
	for _, each := range texts(0, 10) {
		sent = append(sent, strings.Repeat(each, 1000))
	}
	send(c.producer(pulsar.ProducerOptions{CompressionType: kind}), sent)
	equal(consume(consumer, 10), sent)
}

func chunking(c *cell) {
	consumer := c.exclusive()
	producer := c.producer(pulsar.ProducerOptions{EnableChunking: true})
	large := make([]byte, 6_000_000)
	value(rand.Read(large))
	sent := [][]byte{[]byte("before"), large, []byte("behind")}
	for _, each := range sent {
		sendOne(producer, &pulsar.ProducerMessage{Payload: each})
	}
	for place, message := range receive(consumer, 3) {
		that(bytes.Equal(message.Payload(), sent[place]), "another message came back")
	}
}

func delayed(c *cell) {
	consumer := c.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	producer := c.single()
	start := time.Now()
	sendOne(producer, &pulsar.ProducerMessage{Payload: []byte("later"), DeliverAfter: time.Second})
	sendOne(producer, &pulsar.ProducerMessage{Payload: []byte("now")})
	equal(consume(consumer, 2), []string{"now", "later"})
	that(time.Since(start) > 900*time.Millisecond, "too early")
}

func nonPersistent(c *cell) {
	topic := strings.Replace(c.Topic, "persistent://", "non-persistent://", 1)
	consumer := c.consumer(pulsar.ConsumerOptions{Topic: topic})
	send(c.producer(pulsar.ProducerOptions{Topic: topic}), texts(0, 10))
	equal(consume(consumer, 10), texts(0, 10))
}

func messageIndex(c *cell) {
	consumer := c.exclusive()
	send(c.single(), texts(0, 5))
	for place, message := range receive(consumer, 5) {
		that(message.Index() != nil, "no index")
		equal(*message.Index(), uint64(place))
	}
}

func encryption(c *cell) {
	keys := crypto.NewFileKeyReader(c.PublicKey, c.PrivateKey)
	consumer := c.consumer(pulsar.ConsumerOptions{Decryption: &pulsar.MessageDecryptionInfo{KeyReader: keys}})
	without := c.consumer(pulsar.ConsumerOptions{
		SubscriptionName: "t",
		Decryption:       &pulsar.MessageDecryptionInfo{ConsumerCryptoFailureAction: crypto.ConsumerCryptoFailureActionConsume},
	})
	producer := c.producer(pulsar.ProducerOptions{
		Encryption: &pulsar.ProducerEncryptionInfo{KeyReader: keys, Keys: []string{"k"}},
	})
	send(producer, texts(0, 3))
	equal(consume(consumer, 3), texts(0, 3))
	for _, message := range receive(without, 3) {
		that(!strings.HasPrefix(text(message), "a000"), "in the clear")
	}
}

func keyShared(c *cell) {
	consumers := []pulsar.Consumer{}
	for range 2 {
		consumers = append(consumers, c.consumer(pulsar.ConsumerOptions{Type: pulsar.KeyShared}))
	}
	producer := c.single()
	for number := range 10 {
		for key := range 5 {
			message := &pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number)), Key: "key-" + strconv.Itoa(key)}
			producer.SendAsync(context.Background(), message, func(pulsar.MessageID, *pulsar.ProducerMessage, error) {})
		}
	}
	must(producer.FlushWithCtx(context.Background()))
	numbers, owners, count := map[string]string{}, map[string]int{}, 0
	for end := time.Now().Add(patience); count < 50 && time.Now().Before(end); {
		for place, consumer := range consumers {
			for message := within(50*time.Millisecond, consumer); message != nil; message = within(50*time.Millisecond, consumer) {
				must(consumer.Ack(message))
				count++
				numbers[message.Key()] += text(message)
				owner, known := owners[message.Key()]
				that(!known || owner == place, "two consumers of a key")
				owners[message.Key()] = place
			}
		}
	}
	equal(count, 50)
	for _, each := range numbers {
		equal(each, "0123456789")
	}
}
