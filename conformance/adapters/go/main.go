// The conformance kit's adapter for the official Go client.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// answer is a line for the kit, with one of the last three fields.
type answer struct {
	ID          int64    `json:"id"`
	OK          any      `json:"ok,omitempty"`
	Error       *refusal `json:"error,omitempty"`
	Unsupported string   `json:"unsupported,omitempty"`
}

// refusal is an error of one of the kit's kinds.
type refusal struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// lack is why the client cannot do what a request asks for.
type lack string

func (l lack) Error() string { return string(l) }

// lacks are the operations and options that the client does not have.
var lacks = map[string]string{
	"send.null":              "messages always have a value",
	"consumer.ack-timeout":   "no such option",
	"consumer.priority":      "no such option",
	"consumer.batch-receive": "no such option",
	"receive.sequence":       "messages have no sequence id",
	"receive-batch":          "no such call",
	"redeliver":              "no such call",
	"transaction.scalable":   "the client has no scalable topics",
}

// reply has what an operation returns.
type reply map[string]any

type operation func(*adapter, *request) (reply, error)

// on makes an operation of what a thing of one kind does.
func on[T closing](handle func(*request) string, do func(*adapter, T, *request) (reply, error)) operation {
	return func(a *adapter, r *request) (reply, error) {
		thing, err := find[T](a, handle(r))
		if err != nil {
			return nil, err
		}
		return do(a, thing, r)
	}
}

func ofClient(r *request) string      { return r.Client }
func ofProducer(r *request) string    { return r.Producer }
func ofConsumer(r *request) string    { return r.Consumer }
func ofTransaction(r *request) string { return r.Transaction }

var operations = map[string]operation{
	"open":                   (*adapter).open,
	"close":                  on(func(r *request) string { return r.Handle }, (*adapter).close),
	"producer":               on(ofClient, (*adapter).producer),
	"send":                   on(ofProducer, (*adapter).send),
	"flush":                  on(ofProducer, (*adapter).flush),
	"last-sequence":          on(ofProducer, (*adapter).lastSequence),
	"consumer":               on(ofClient, (*adapter).consumer),
	"reader":                 on(ofClient, (*adapter).reader),
	"receive":                on(ofConsumer, (*adapter).receive),
	"acknowledge":            on(ofConsumer, (*adapter).acknowledge),
	"acknowledge-cumulative": on(ofConsumer, (*adapter).acknowledgeCumulative),
	"negative-acknowledge":   on(ofConsumer, (*adapter).negativeAcknowledge),
	"reconsume-later":        on(ofConsumer, (*adapter).reconsumeLater),
	"seek":                   on(ofConsumer, (*adapter).seek),
	"unsubscribe":            on(ofConsumer, (*adapter).unsubscribe),
	"last-message-id":        on(ofConsumer, (*adapter).lastMessageID),
	"has-message":            on(func(r *request) string { return r.Reader }, (*adapter).hasMessage),
	"table-view":             on(ofClient, (*adapter).tableView),
	"table":                  on(func(r *request) string { return r.View }, (*adapter).table),
	"partitions":             on(ofClient, (*adapter).partitions),
	"transaction":            on(ofClient, (*adapter).transaction),
	"commit":                 on(ofTransaction, (*adapter).commit),
	"abort":                  on(ofTransaction, (*adapter).abort),
}

func hello() reply {
	names := []string{}
	for name := range operations {
		names = append(names, name)
	}
	version := ""
	if about, ok := debug.ReadBuildInfo(); ok {
		for _, each := range about.Deps {
			if each.Path == "github.com/apache/pulsar-client-go" {
				version = each.Version[1:]
			}
		}
	}
	return reply{
		"protocol": 2, "client": "Pulsar-Go", "version": version, "topics": []string{"classic"},
		"operations": names, "lacks": lacks,
	}
}

// kinds has words in texts of errors. Those of the broker come first, because the client adds words to them.
var kinds = []struct {
	kind  string
	words []string
}{
	{"NotFound", []string{"TopicNotFound", "SubscriptionNotFound", "TransactionNotFound", "TransactionNoFoundError"}},
	{"Authentication", []string{"AuthenticationError"}},
	{"Authorization", []string{"AuthorizationError"}},
	{"ProducerBusy", []string{"ProducerBusy"}},
	{"Fenced", []string{"ProducerFenced", "producer fenced"}},
	{"ConsumerBusy", []string{"ConsumerBusy"}},
	{"IncompatibleSchema", []string{"IncompatibleSchema"}},
	{"TopicTerminated", []string{"TopicTerminated"}},
	{"TransactionConflict", []string{"TransactionConflict", "InvalidTxnStatus"}},
	{"ProducerQueueFull", []string{"ProducerQueueIsFull"}},
	{"MemoryBufferFull", []string{"ClientMemoryBufferIsFull"}},
	{"Crypto", []string{"CryptoError"}},
	{"InvalidConfiguration", []string{"InvalidConfiguration"}},
	{"InvalidServiceURL", []string{"InvalidURL"}},
	{"AlreadyClosed", []string{"AlreadyClosedError", "ConsumerClosed", "ProducerClosed", "state is closed", "closed consumer"}},
	{"Timeout", []string{"TimeoutError", "timed out", "deadline exceeded"}},
	{"Connect", []string{"ConnectError", "NotConnectedError", "connection closed", "connection error", "connection refused"}},
}

func kindOf(err error) string {
	for _, each := range kinds {
		for _, words := range each.words {
			if strings.Contains(err.Error(), words) {
				return each.kind
			}
		}
	}
	return "Other"
}

func (a *adapter) answer(asked *request, unknown error) (result answer) {
	result.ID = asked.ID
	defer func() {
		if failed := recover(); failed != nil {
			if missing, is := failed.(lack); is {
				result.Unsupported = string(missing)
				return
			}
			fmt.Fprintf(os.Stderr, "%v\n%s\n", failed, debug.Stack())
			result.Error = &refusal{"Other", fmt.Sprint(failed)}
		}
	}()
	if asked.Do == "hello" {
		result.OK = hello()
		return result
	}
	operation, known := operations[asked.Do]
	if !known {
		result.Unsupported = "no operation " + asked.Do
		return result
	}
	if unknown != nil {
		result.Unsupported = "the adapter does not know an option: " + unknown.Error()
		return result
	}
	ok, err := operation(a, asked)
	var missing lack
	switch {
	case errors.As(err, &missing):
		result.Unsupported = string(missing)
	case err != nil:
		result.Error = &refusal{kindOf(err), err.Error()}
	case ok == nil:
		result.OK = reply{}
	default:
		result.OK = ok
	}
	return result
}

func main() {
	a := newAdapter()
	lines := bufio.NewReader(os.Stdin)
	var writing sync.Mutex
	answers := json.NewEncoder(os.Stdout)
	last := map[string]chan struct{}{} // the ends of the latest requests, by handle
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		asked := &request{}
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		unknown := strict.Decode(asked) // which fills in the fields that it knows
		earlier, done := last[asked.handle()], make(chan struct{})
		last[asked.handle()] = done
		go func() {
			defer close(done)
			if earlier != nil {
				<-earlier
			}
			result := a.answer(asked, unknown)
			writing.Lock()
			defer writing.Unlock()
			if err := answers.Encode(result); err != nil {
				panic(err)
			}
		}()
	}
}
