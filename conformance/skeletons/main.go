// An adapter: it lets the conformance kit of Pulsarium drive a client in Go.
//
// The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong
// on standard error. Add a function for each operation that the client has. docs/conformance.md lists the operations.
// A program with other packages needs a module: `go mod init adapter`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
)

type object = map[string]any

// things has clients, producers, consumers, ... by the kit's handles.
var things sync.Map

// refusal is an error of the client, of one of the kit's kinds, such as NotFound or Timeout.
type refusal struct{ kind, text string }

func (r refusal) Error() string { return r.text }

func open(request object) (object, error) {
	things.Store(request["as"], request["url"]) // TODO: connect a client to the URL, and keep the client
	return object{}, nil                        // an operation that returns something has it here: object{"ids": ids}
}

func shut(request object) (object, error) {
	// TODO: close the client, producer or consumer. The kit also asks for handles of nothing.
	if _, isOpen := things.LoadAndDelete(request["handle"]); !isOpen {
		return nil, refusal{"AlreadyClosed", fmt.Sprint("nothing is open as ", request["handle"])}
	}
	return object{}, nil
}

var operations = map[string]func(object) (object, error){"open": open, "close": shut}

// lacks says why the client lacks an operation or option: {"send.delay": "no delayed messages"}.
var lacks = map[string]string{}

func hello() object {
	names := []string{}
	for name := range operations {
		names = append(names, name)
	}
	about := object{"protocol": 2, "client": "My-Client", "version": "1.0", "topics": []string{"classic"}}
	about["operations"], about["lacks"] = names, lacks
	return about
}

// answer returns ok, unsupported or error. Every request is answered, whatever happens.
func answer(request object) (told object) {
	defer func() {
		if failed := recover(); failed != nil {
			told = object{"error": object{"kind": "Other", "text": fmt.Sprint(failed)}}
		}
	}()
	name := request["do"].(string)
	if name == "hello" {
		return object{"ok": hello()}
	}
	do, isKnown := operations[name]
	if !isKnown {
		return object{"unsupported": "no operation " + name}
	}
	ok, err := do(request)
	switch refused, is := err.(refusal); {
	case is:
		return object{"error": object{"kind": refused.kind, "text": refused.text}}
	case err != nil: // TODO: find the kind of the client's own errors
		return object{"error": object{"kind": "Other", "text": err.Error()}}
	}
	return object{"ok": ok}
}

// turn names what a request waits for: requests of one handle keep their order, and a receive holds up no other.
func turn(request object) string {
	for _, name := range []string{"as", "handle", "producer", "consumer", "reader", "view", "transaction", "client"} {
		if handle, isThere := request[name]; isThere {
			return fmt.Sprint(handle, strings.HasPrefix(request["do"].(string), "receive"))
		}
	}
	return ""
}

func main() {
	var writing sync.Mutex
	last := map[string]chan struct{}{} // by turn, closed after the latest answer
	requests, answers := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		request := object{}
		if requests.Decode(&request) != nil {
			return // the input has ended
		}
		before, done := last[turn(request)], make(chan struct{})
		last[turn(request)] = done
		go func() {
			defer close(done)
			if before != nil {
				<-before
			}
			told := answer(request)
			told["id"] = request["id"]
			writing.Lock()
			defer writing.Unlock()
			answers.Encode(told)
		}()
	}
}
