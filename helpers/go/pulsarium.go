// Package pulsarium starts Pulsarium, an emulator of the Apache Pulsar broker, for tests.
package pulsarium

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Broker is a broker as one test sees it: with a namespace, faults and a clock of the test's own.
type Broker struct {
	ServiceURL string // pulsar://host:port
	AdminURL   string // http://host:port
	Namespace  string // tenant/namespace
	Clock      *Clock
	t          testing.TB
}

// Start returns the broker of this test binary, which its first test starts, with a new namespace.
//
// The broker ends with the test binary. After the test, its faults, its namespace and the time of the namespace are
// gone. Options are those of "pulsarium serve"; tests with the same options share a broker. Without options, the
// variables PULSARIUM_SERVICE_URL and PULSARIUM_ADMIN_URL, which "pulsarium exec" sets, name a running broker.
func Start(t testing.TB, options ...string) *Broker {
	t.Helper()
	found, err := running(options)
	if err != nil {
		t.Fatal(err)
	}
	broker := &Broker{ServiceURL: found.serviceURL, AdminURL: found.adminURL, t: t}
	var made struct{ Name string }
	broker.call(http.MethodPost, "/lab/namespaces", nil, map[string]any{"name": strings.ReplaceAll(t.Name(), "/", "-")}, &made)
	broker.Namespace = made.Name
	broker.Clock = &Clock{broker}
	t.Cleanup(func() {
		broker.Clock.Reset()
		broker.call(http.MethodDelete, "/lab/namespaces/"+made.Name, nil, nil, nil)
	})
	return broker
}

// Topic returns the full name of a topic in the test's namespace. A missing topic is created by its first client.
func (b *Broker) Topic(name string) string {
	return "persistent://" + b.Namespace + "/" + name
}

// Which selects the frames of a fault, by the names of POST /lab/faults: "stage", "topic", "count", "when", ...
type Which map[string]any

// Fault is a rule that acts on frames.
type Fault struct {
	broker *Broker
	path   string
}

// Fault applies an action, such as "drop" or {"kind": "delay", "seconds": 1}, to frames of a command, such as "SEND".
//
// The rule acts on the first matching frame of the test's namespace. Which{"namespace": "*"} selects those of all
// tests. The rule is removed after the test.
func (b *Broker) Fault(action any, command string, which ...Which) *Fault {
	b.t.Helper()
	asked := map[string]any{"action": action, "command": command, "namespace": b.Namespace}
	for _, selectors := range which {
		for name, value := range selectors {
			asked[name] = value
		}
	}
	var added struct{ ID int }
	b.call(http.MethodPost, "/lab/faults", nil, asked, &added)
	fault := &Fault{b, fmt.Sprintf("/lab/faults/%d", added.ID)}
	b.t.Cleanup(fault.Remove)
	return fault
}

// Wait returns when the rule has acted so many times. The test fails when that takes more than 30 seconds.
func (f *Fault) Wait(hits int) {
	f.broker.t.Helper()
	f.broker.call(http.MethodGet, f.path+"/wait", url.Values{"n": {strconv.Itoa(hits)}, "timeout": {"30"}}, nil, nil)
}

// Hits returns how often the rule has acted.
func (f *Fault) Hits() int {
	f.broker.t.Helper()
	var shown struct{ Hits int }
	f.broker.call(http.MethodGet, f.path, nil, nil, &shown)
	return shown.Hits
}

// Remove removes the rule, which may be removed already.
func (f *Fault) Remove() {
	f.broker.t.Helper()
	f.broker.call(http.MethodDelete, f.path, nil, nil, nil)
}

// Clock is the time of the test's namespace.
type Clock struct{ broker *Broker }

// Advance advances the clock, and returns when all due timers have run.
func (c *Clock) Advance(by time.Duration) {
	c.broker.t.Helper()
	c.steer("advance", map[string]any{"seconds": by.Seconds()})
}

// Freeze stops the clock.
func (c *Clock) Freeze() {
	c.broker.t.Helper()
	c.steer("freeze", nil)
}

// Resume lets the clock run again from the time that it shows.
func (c *Clock) Resume() {
	c.broker.t.Helper()
	c.steer("resume", nil)
}

// Reset returns to the broker's time.
func (c *Clock) Reset() {
	c.broker.t.Helper()
	c.steer("reset", nil)
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.broker.t.Helper()
	var shown struct{ NowMs int64 }
	c.broker.call(http.MethodGet, "/lab/clock", c.namespace(), nil, &shown)
	return time.UnixMilli(shown.NowMs)
}

func (c *Clock) steer(how string, body any) {
	c.broker.t.Helper()
	c.broker.call(http.MethodPost, "/lab/clock/"+how, c.namespace(), body, nil)
}

func (c *Clock) namespace() url.Values {
	return url.Values{"namespace": {c.broker.Namespace}}
}
