package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func exclusiveBusy(c *cell) {
	consumer := c.exclusive()
	_, err := c.tryConsumer(pulsar.ConsumerOptions{})
	refused("a second consumer", err)
	consumer.Close()
	c.exclusive()
}

func failover(c *cell) {
	consumers := []pulsar.Consumer{}
	for _, name := range []string{"a", "b"} {
		consumers = append(consumers, c.consumer(pulsar.ConsumerOptions{Type: pulsar.Failover, Name: name}))
	}
	producer := c.single()
	send(producer, texts(0, 10))
	// A hash of the consumers' names and the topic's name decides which consumer is active.
	var message pulsar.Message
	active := 1
	for end := time.Now().Add(patience); message == nil && time.Now().Before(end); {
		active = 1 - active
		message = within(100*time.Millisecond, consumers[active])
	}
	that(message != nil && text(message) == "a0000", "no consumer is active")
	must(consumers[active].Ack(message))
	equal(consume(consumers[active], 9), texts(1, 10))
	nothingMore(consumers[1-active])
	consumers[active].Close()
	send(producer, texts(10, 20))
	equal(consume(consumers[1-active], 10), texts(10, 20))
}

func shared(c *cell) {
	consumers := []pulsar.Consumer{}
	for range 2 {
		consumers = append(consumers, c.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared, ReceiverQueueSize: 5}))
	}
	send(c.single(), texts(0, 20))
	found, busy := []string{}, map[int]bool{}
	for end := time.Now().Add(patience); len(found) < 20 && time.Now().Before(end); {
		for place, consumer := range consumers {
			if message := within(100*time.Millisecond, consumer); message != nil {
				must(consumer.Ack(message))
				found = append(found, text(message))
				busy[place] = true
			}
		}
	}
	slices.Sort(found)
	equal(found, texts(0, 20))
	that(len(busy) == 2, "one consumer got everything")
}

func partitioned(c *cell) {
	consumer := c.exclusive()
	send(c.single(), texts(0, 30))
	messages := receive(consumer, 30)
	got, topics := textsOf(messages), map[string]bool{}
	slices.Sort(got)
	equal(got, texts(0, 30))
	for _, message := range messages {
		topics[message.Topic()] = true
	}
	equal(len(topics), 3)
}

func pattern(c *cell) {
	base := "persistent://" + c.Namespace + "/"
	for _, name := range []string{"red-1", "red-2", "blue"} {
		send(c.producer(pulsar.ProducerOptions{Topic: base + name}), []string{name})
	}
	consumer := c.consumer(pulsar.ConsumerOptions{TopicsPattern: base + "red-.*"})
	got := consume(consumer, 2)
	slices.Sort(got)
	equal(got, []string{"red-1", "red-2"})
	nothingMore(consumer)
}

func multiTopics(c *cell) {
	topics := []string{c.Topic + "-0", c.Topic + "-1"}
	consumer := c.consumer(pulsar.ConsumerOptions{Topics: topics})
	for _, topic := range topics {
		send(c.producer(pulsar.ProducerOptions{Topic: topic}), []string{topic})
	}
	got := consume(consumer, 2)
	slices.Sort(got)
	equal(got, topics)
}

func unload(c *cell) {
	consumer, producer := c.exclusive(), c.single()
	send(producer, texts(0, 5))
	equal(consume(consumer, 5), texts(0, 5))
	c.administrate("unload")
	send(producer, texts(5, 10))
	// Acknowledgements in flight may have been lost with the old consumer.
	missing := texts(5, 10)
	for len(missing) > 0 {
		got := consume(consumer, 1)[0]
		missing = slices.DeleteFunc(missing, func(each string) bool { return each == got })
	}
}

func brokers(c *cell) {
	for _, url := range c.ServiceURLs {
		c.client = c.open(pulsar.ClientOptions{URL: url})
		for number := range 8 {
			topic := fmt.Sprintf("%s-%d", c.Topic, number)
			consumer := c.consumer(pulsar.ConsumerOptions{Topic: topic})
			send(c.producer(pulsar.ProducerOptions{Topic: topic}), []string{topic})
			equal(consume(consumer, 1), []string{topic})
			consumer.Close()
		}
	}
}

func five(c *cell, options pulsar.ClientOptions) {
	c.client = c.open(options)
	consumer := c.exclusive()
	send(c.single(), texts(0, 5))
	equal(consume(consumer, 5), texts(0, 5))
}

func token(c *cell) {
	five(c, pulsar.ClientOptions{URL: c.ServiceURL, Authentication: pulsar.NewAuthenticationToken(c.Token)})
	c.client = c.open(pulsar.ClientOptions{
		URL: c.ServiceURL, Authentication: pulsar.NewAuthenticationToken(c.WrongToken),
	})
	_, err := c.tryProducer(pulsar.ProducerOptions{})
	refused("a wrong token", err)
}

func overTLS(c *cell) {
	five(c, pulsar.ClientOptions{
		URL: c.TLSURL, TLSTrustCertsFilePath: c.Authority, TLSValidateHostname: true,
		Authentication: pulsar.NewAuthenticationToken(c.Token),
	})
}

func zeroQueue(c *cell) {
	consumer := c.consumer(pulsar.ConsumerOptions{EnableZeroQueueConsumer: true})
	send(c.single(), texts(0, 10))
	equal(consume(consumer, 10), texts(0, 10))
}

func producerName(c *cell) {
	producer := c.producer(pulsar.ProducerOptions{Name: "p"})
	equal(producer.Name(), "p")
	_, err := c.tryProducer(pulsar.ProducerOptions{Name: "p"})
	refused("a second p", err)
	producer.Close()
	c.producer(pulsar.ProducerOptions{Name: "p"})
}

func exclusiveProducer(c *cell) {
	owner := c.producer(pulsar.ProducerOptions{ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	_, err := c.tryProducer(pulsar.ProducerOptions{})
	refused("another producer", err)
	send(owner, []string{"mine"})
}

func waitForExclusive(c *cell) {
	owner := c.producer(pulsar.ProducerOptions{ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	waiting := make(chan pulsar.Producer, 1)
	go func() {
		mode := pulsar.ProducerAccessModeWaitForExclusive
		if next, err := c.tryProducer(pulsar.ProducerOptions{ProducerAccessMode: mode}); err == nil {
			waiting <- next
		}
	}()
	select {
	case <-waiting:
		failf("the producer did not wait")
	case <-time.After(500 * time.Millisecond):
	}
	owner.Close()
	select {
	case next := <-waiting:
		send(next, []string{"mine now"})
	case <-time.After(patience):
		failf("its turn did not come")
	}
}

func terminated(c *cell) {
	consumer := c.exclusive()
	producer := c.producer(pulsar.ProducerOptions{SendTimeout: 5 * time.Second})
	send(producer, texts(0, 5))
	c.administrate("terminate")
	equal(consume(consumer, 5), texts(0, 5))
	_, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("too late")})
	refused("a message", err)
}
