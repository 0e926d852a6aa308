package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

const (
	operationTime = 15 * time.Second
	// discovery is how often a client looks for new partitions and topics.
	discovery = 5 * time.Second
)

var logger = log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(os.Stderr, nil)))

// closing is what the kit can close.
type closing interface{ Close() }

// client has a second one for transactions, because a client with transactions cannot open without a coordinator.
type client struct {
	pulsar.Client
	options       pulsar.ClientOptions
	lock          sync.Mutex
	transactional pulsar.Client
}

func (c *client) withTransactions() (pulsar.Client, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	var err error
	if c.transactional == nil {
		options := c.options
		options.EnableTransaction = true
		c.transactional, err = pulsar.NewClient(options)
	}
	return c.transactional, err
}

func (c *client) Close() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.Client.Close()
	if c.transactional != nil {
		c.transactional.Close()
	}
}

type transaction struct{ pulsar.Transaction }

// Close does nothing: the kit ends transactions.
func (*transaction) Close() {}

// adapter has what the requests opened, and the messages and ids by the names that the kit knows.
type adapter struct {
	lock     sync.Mutex
	things   map[string]closing
	messages map[string]pulsar.Message
	ids      map[string]pulsar.MessageID
}

func newAdapter() *adapter {
	return &adapter{
		things:   map[string]closing{},
		messages: map[string]pulsar.Message{},
		ids:      map[string]pulsar.MessageID{"earliest": pulsar.EarliestMessageID(), "latest": pulsar.LatestMessageID()},
	}
}

func (a *adapter) keep(handle string, thing closing) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.things[handle] = thing
}

// kept keeps an id, and its message when there is one, and returns the name for the kit.
func (a *adapter) kept(id pulsar.MessageID, message pulsar.Message) string {
	a.lock.Lock()
	defer a.lock.Unlock()
	name := strconv.Itoa(len(a.ids))
	a.ids[name] = id
	a.messages[name] = message
	return name
}

func (a *adapter) known(name string) (pulsar.MessageID, pulsar.Message) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.ids[name], a.messages[name]
}

func find[T closing](a *adapter, handle string) (T, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	found, ok := a.things[handle].(T)
	if !ok {
		return found, fmt.Errorf("nothing is open as %s: AlreadyClosedError", handle)
	}
	return found, nil
}

// choose finds a value by the protocol's name for it. A name that the client does not know is a lack.
func choose[T any](values map[string]T, name string) T {
	value, known := values[name]
	if !known {
		panic(lack("the client has no " + name))
	}
	return value
}

func (a *adapter) open(r *request) (reply, error) {
	options := pulsar.ClientOptions{URL: r.URL, Logger: logger, OperationTimeout: operationTime}
	if r.Token != "" {
		options.Authentication = pulsar.NewAuthenticationToken(r.Token)
	}
	if r.Trust != "" {
		options.TLSTrustCertsFilePath, options.TLSValidateHostname = r.Trust, true
	}
	opened, err := pulsar.NewClient(options)
	if err == nil {
		a.keep(r.As, &client{Client: opened, options: options})
	}
	return nil, err
}

func (a *adapter) close(thing closing, _ *request) (reply, error) {
	thing.Close()
	return nil, nil
}

func (a *adapter) tableView(client *client, r *request) (reply, error) {
	view, err := client.CreateTableView(pulsar.TableViewOptions{
		Topic: r.Topic, Schema: plain{}, SchemaValueType: reflect.TypeFor[string](), Logger: logger,
	})
	if err == nil {
		a.keep(r.As, view)
	}
	return nil, err
}

func (a *adapter) table(view pulsar.TableView, _ *request) (reply, error) {
	entries := map[string]any{}
	err := view.ForEach(func(key string, value any) error {
		entries[key] = value
		return nil
	})
	return reply{"entries": entries}, err
}

func (a *adapter) partitions(client *client, r *request) (reply, error) {
	names, err := client.TopicPartitions(r.Topic)
	return reply{"topics": names}, err
}

func (a *adapter) transaction(client *client, r *request) (reply, error) {
	transactional, err := client.withTransactions()
	if err != nil {
		return nil, err
	}
	begun, err := transactional.NewTransaction(time.Minute)
	if err == nil {
		a.keep(r.As, &transaction{begun})
	}
	return nil, err
}

func (a *adapter) commit(begun *transaction, _ *request) (reply, error) {
	return nil, begun.Commit(context.Background())
}

func (a *adapter) abort(begun *transaction, _ *request) (reply, error) {
	return nil, begun.Abort(context.Background())
}
