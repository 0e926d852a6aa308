package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"reflect"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func reader(env *environment) {
	producer := env.single()
	defer producer.Close()
	before := send(producer, texts("a", 0, 20))
	earliest := value(env.client.CreateReader(pulsar.ReaderOptions{
		Topic: env.Topic, StartMessageID: pulsar.EarliestMessageID(),
	}))
	defer earliest.Close()
	latest := value(env.client.CreateReader(pulsar.ReaderOptions{
		Topic: env.Topic, StartMessageID: pulsar.LatestMessageID(),
	}))
	defer latest.Close()
	equal("from the earliest", toEnd(earliest), texts("a", 0, 20))
	equal("from the latest", toEnd(latest), []string{})
	ids := send(producer, texts("a", 20, 25))
	equal("the rest", toEnd(earliest), texts("a", 20, 25))
	equal("what follows the latest", next(latest, 5), texts("a", 20, 25))
	must(earliest.Seek(ids[2]))
	equal("after a seek", toEnd(earliest), texts("a", 23, 25))
	must(earliest.Seek(before[0]))
	equal("after a seek to the first", toEnd(earliest), texts("a", 1, 25))
}

func readerMessageID(env *environment) {
	producer := env.producer(pulsar.ProducerOptions{BatchingMaxMessages: 10, BatchingMaxPublishDelay: time.Minute})
	defer producer.Close()
	ids := send(producer, texts("a", 0, 20))
	for _, start := range []int{0, 4, 9, 10, 19} {
		for _, inclusive := range []bool{false, true} {
			from := value(pulsar.DeserializeMessageID(ids[start].Serialize()))
			each := value(env.client.CreateReader(pulsar.ReaderOptions{
				Topic: env.Topic, StartMessageID: from, StartMessageIDInclusive: inclusive,
			}))
			first := start + 1
			if inclusive {
				first = start
			}
			equal("from "+from.String(), toEnd(each), texts("a", first, 20))
			each.Close()
		}
	}
}

func seekID(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{Type: subscriptionTypes[env.Subscription]})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	ids := send(producer, texts("a", 0, 20))
	equal("at first", consume(consumer, 20), texts("a", 0, 20))
	must(consumer.Seek(ids[10]))
	equal("after the seek", consume(consumer, 9), texts("a", 11, 20))
	nothingMore(consumer)
	must(consumer.Seek(ids[0]))
	equal("after a seek to the first", consume(consumer, 19), texts("a", 1, 20))
	must(consumer.Seek(ids[19]))
	nothingMore(consumer)
}

func seekTime(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{Type: subscriptionTypes[env.Subscription]})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 10))
	// Two publishes on either side must not share a stamp of milliseconds.
	<-time.After(5 * time.Millisecond)
	moment := time.Now()
	send(producer, texts("a", 10, 20))
	equal("at first", consume(consumer, 20), texts("a", 0, 20))
	must(consumer.SeekByTime(moment))
	equal("since the moment", consume(consumer, 10), texts("a", 10, 20))
	nothingMore(consumer)
	must(consumer.SeekByTime(moment.Add(-time.Hour)))
	equal("since an hour before", consume(consumer, 20), texts("a", 0, 20))
}

func nack(env *environment) {
	// Without AckWithResponse the client holds acknowledgements back as long as the negative one. A broker that gets the
	// negative one first redelivers all messages of Exclusive and Failover.
	consumer := env.consumer(pulsar.ConsumerOptions{
		Type: subscriptionTypes[env.Subscription], NackRedeliveryDelay: 100 * time.Millisecond, AckWithResponse: true,
	})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 10))
	messages := receive(consumer, 10)
	for _, message := range slices.Concat(messages[:4], messages[5:]) {
		must(consumer.Ack(message))
	}
	consumer.Nack(messages[4])
	equal("again", consume(consumer, 1), []string{"a0004"})
	nothingMore(consumer)
}

func nackCount(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared, NackRedeliveryDelay: 50 * time.Millisecond})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	send(producer, []string{"again"})
	for count := range uint32(4) {
		message := receive(consumer, 1)[0]
		equal("redelivery count", message.RedeliveryCount(), count)
		consumer.Nack(message)
	}
	equal("at last", consume(consumer, 1), []string{"again"})
	nothingMore(consumer)
}

func ackResponse(env *environment) {
	options := pulsar.ConsumerOptions{Type: subscriptionTypes[env.Subscription], AckWithResponse: true}
	consumer := env.consumer(options)
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 30))
	messages := receive(consumer, 30)
	ids := []pulsar.MessageID{}
	for place, message := range messages[:20] {
		if place%2 == 0 {
			must(consumer.Ack(message))
		} else {
			ids = append(ids, message.ID())
		}
	}
	must(consumer.AckIDList(ids))
	consumer.Close()
	again := env.consumer(options)
	defer again.Close()
	equal("what is left", consume(again, 10), texts("a", 20, 30))
	nothingMore(again)
}

func ackCumulative(env *environment) {
	options := pulsar.ConsumerOptions{Type: subscriptionTypes[env.Subscription], AckWithResponse: true}
	consumer := env.consumer(options)
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 20))
	must(consumer.AckCumulative(receive(consumer, 13)[12]))
	consumer.Close()
	again := env.consumer(options)
	defer again.Close()
	equal("what is left", consume(again, 7), texts("a", 13, 20))
	nothingMore(again)
}

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

func pattern(env *environment) {
	base := "persistent://" + env.Namespace + "/"
	env.createPartitioned(base+"red-parts", 2)
	consumer := env.consumer(pulsar.ConsumerOptions{
		TopicsPattern:               base + "red-.*",
		AutoDiscoveryPeriod:         time.Second,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	defer consumer.Close()
	for _, name := range []string{"red-1", "blue", "red-parts"} {
		producer := value(env.client.CreateProducer(pulsar.ProducerOptions{Topic: base + name}))
		send(producer, []string{name})
		producer.Close()
	}
	got := consume(consumer, 2)
	slices.Sort(got)
	equal("matching topics", got, []string{"red-1", "red-parts"})
	nothingMore(consumer)
}

func producerName(env *environment) {
	producer := env.producer(pulsar.ProducerOptions{Name: "p"})
	equal("name", producer.Name(), "p")
	_, err := env.client.CreateProducer(pulsar.ProducerOptions{Topic: env.Topic, Name: "p"})
	refused("a second p", err)
	producer.Close()
	env.producer(pulsar.ProducerOptions{Name: "p"}).Close()
}

func accessModes(env *environment) {
	owner := env.producer(pulsar.ProducerOptions{ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	for _, mode := range []pulsar.ProducerAccessMode{
		pulsar.ProducerAccessModeExclusive, pulsar.ProducerAccessModeShared,
	} {
		_, err := env.client.CreateProducer(pulsar.ProducerOptions{Topic: env.Topic, ProducerAccessMode: mode})
		refused("another producer", err)
	}
	send(owner, []string{"mine"})
	waiter := make(chan pulsar.Producer, 1)
	go func() {
		mode := pulsar.ProducerAccessModeWaitForExclusive
		next, err := env.client.CreateProducer(pulsar.ProducerOptions{Topic: env.Topic, ProducerAccessMode: mode})
		if err == nil {
			waiter <- next
		}
	}()
	owner.Close()
	select {
	case next := <-waiter:
		send(next, []string{"mine now"})
		next.Close()
	case <-time.After(patience):
		failf("the waiting producer did not get its turn")
	}
}

func unsubscribe(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	other := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	refused("unsubscribing beside another", other.Unsubscribe())
	other.Close()
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 5))
	equal("at first", consume(consumer, 5), texts("a", 0, 5))
	must(consumer.Unsubscribe())
	again := env.consumer(pulsar.ConsumerOptions{SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	defer again.Close()
	equal("from the beginning", consume(again, 5), texts("a", 0, 5))
}

func chunks(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{})
	defer consumer.Close()
	producer := env.producer(pulsar.ProducerOptions{DisableBatching: true, EnableChunking: true})
	defer producer.Close()
	for _, size := range []int{12_000_000, 10, 5_000_000} {
		payload := make([]byte, size)
		value(rand.Read(payload))
		value(producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload}))
		if !bytes.Equal(receive(consumer, 1)[0].Payload(), payload) {
			failf("%d bytes came back changed", size)
		}
	}
}

func zeroQueue(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{EnableZeroQueueConsumer: true})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	send(producer, texts("a", 0, 50))
	equal("all", consume(consumer, 50), texts("a", 0, 50))
}

type person struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

func schemaJSON(env *environment) {
	definition := `{"type":"record","name":"Person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int"}]}`
	consumer := env.consumer(pulsar.ConsumerOptions{Schema: pulsar.NewJSONSchema(definition, nil)})
	defer consumer.Close()
	producer := env.producer(pulsar.ProducerOptions{Schema: pulsar.NewJSONSchema(definition, nil)})
	defer producer.Close()
	value(producer.Send(context.Background(), &pulsar.ProducerMessage{Value: person{"Ada", 36}}))
	message := receive(consumer, 1)[0]
	var got person
	must(message.GetSchemaValue(&got))
	equal("value", got, person{"Ada", 36})
	equal("schema version", message.SchemaVersion(), make([]byte, 8))
}

func lastMessageIDs(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{})
	defer consumer.Close()
	producer := env.single()
	defer producer.Close()
	ids := send(producer, texts("a", 0, 5))
	last := value(consumer.GetLastMessageIDs())
	equal("topics", len(last), 1)
	equal("entry", last[0].EntryID(), ids[4].EntryID())
	equal("ledger", last[0].LedgerID(), ids[4].LedgerID())
}

func tableView(env *environment) {
	schema := pulsar.NewStringSchema(nil)
	producer := env.producer(pulsar.ProducerOptions{Schema: schema})
	defer producer.Close()
	var text *string
	for _, each := range [][2]string{{"a", "1"}, {"b", "2"}, {"a", "3"}} {
		value(producer.Send(context.Background(), &pulsar.ProducerMessage{Key: each[0], Value: each[1]}))
	}
	view := value(env.client.CreateTableView(pulsar.TableViewOptions{
		Topic: env.Topic, Schema: schema, SchemaValueType: reflect.TypeOf(text),
	}))
	defer view.Close()
	equal("size", view.Size(), 2)
	equal("last value", *view.Get("a").(*string), "3")
}

func consumerExclusive(env *environment) {
	consumer := env.consumer(pulsar.ConsumerOptions{})
	defer consumer.Close()
	_, err := env.client.Subscribe(pulsar.ConsumerOptions{Topic: env.Topic, SubscriptionName: "s"})
	refused("a second exclusive consumer", err)
}
