package main

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// activity tells when its consumer becomes active.
type activity chan struct{}

func (a activity) BecameActive(pulsar.Consumer, string, int32) { a <- struct{}{} }

func (a activity) BecameInactive(pulsar.Consumer, string, int32) {}

func failover(env *environment) {
	names := []string{"a", "b"}
	consumers, active := map[string]pulsar.Consumer{}, map[string]activity{}
	for _, name := range names {
		active[name] = make(activity, 10)
		consumers[name] = env.consumer(pulsar.ConsumerOptions{
			Type: pulsar.Failover, Name: name, EventListener: active[name],
		})
	}
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 100))
	// The first to come is active until the second turns out to be preferred, which it is when messages come.
	first, second := "a", "b"
	var message pulsar.Message
	select {
	case each := <-consumers["a"].Chan():
		message = each.Message
	case each := <-consumers["b"].Chan():
		first, second, message = "b", "a", each.Message
	case <-time.After(patience):
		failf("no consumer became active")
	}
	equal("the first message", string(message.Payload()), "a0000")
	must(consumers[first].Ack(message))
	select {
	case <-active[first]:
	case <-time.After(patience):
		failf("the active one does not know")
	}
	equal("the active one", consume(consumers[first], 49), texts("a", 1, 50))
	nothingMore(consumers[second])
	for len(active[second]) > 0 {
		<-active[second] // it was active until the other one came
	}
	consumers[first].Close()
	select {
	case <-active[second]:
	case <-time.After(patience):
		failf("the standby did not become active")
	}
	equal("the standby", consume(consumers[second], 50), texts("a", 50, 100))
	nothingMore(consumers[second])
	consumers[second].Close()
}
