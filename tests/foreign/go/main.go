// Scenarios for the official Go client. One process for many: each line on stdin is a JSON object with "scenario" and
// its arguments, each line on stdout the result. Arguments of the program: the broker's service URL and admin URL.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// request is what a scenario is asked to do; its topic is new.
type request struct {
	Scenario     string `json:"scenario"`
	Topic        string `json:"topic"`
	Subscription string `json:"subscription"`
	Compression  string `json:"compression"`
	Batched      bool   `json:"batched"`
	Partitions   int    `json:"partitions"`
	Consumers    int    `json:"consumers"`
	Messages     int    `json:"messages"`
	Action       string `json:"action"`
	Timeout      int    `json:"timeout"`
	Count        int    `json:"count"`
	Limit        int    `json:"limit"`
}

// counts is what "transform" tells.
type counts struct {
	Sent      int64 `json:"sent"`
	Begun     int64 `json:"begun"`
	Committed int64 `json:"committed"`
	Failed    int64 `json:"failed"`
}

type result struct {
	Scenario  string   `json:"scenario"`
	OK        bool     `json:"ok"`
	Error     string   `json:"error,omitempty"`
	Seconds   float64  `json:"seconds"`
	Scenarios []string `json:"scenarios,omitempty"`
	*counts
}

// environment is a broker as a scenario uses it.
type environment struct {
	client     pulsar.Client
	serviceURL string
	adminURL   string
	logger     log.Logger
	counts     *counts
	request
}

var subscriptionTypes = map[string]pulsar.SubscriptionType{
	"Exclusive": pulsar.Exclusive,
	"Shared":    pulsar.Shared,
	"Failover":  pulsar.Failover,
}

func scenarios() map[string]func(*environment) {
	return map[string]func(*environment){
		"matrix":   matrix,
		"reopen":   reopen,
		"failover": failover,

		"transaction-commit":  transactionCommit,
		"transaction-timeout": transactionTimeout,
		"transform":           transform,
	}
}

func main() {
	logger := log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: os.Args[1], Logger: logger})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	results := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		env := &environment{client: client, serviceURL: os.Args[1], adminURL: os.Args[2], logger: logger}
		if err := json.Unmarshal(lines.Bytes(), &env.request); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := results.Encode(run(env)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(env *environment) (res result) {
	res.Scenario = env.Scenario
	start := time.Now()
	defer func() {
		res.Seconds = time.Since(start).Seconds()
		if failed := recover(); failed != nil {
			err, expected := failed.(failure)
			if !expected {
				panic(failed)
			}
			res.OK = false
			res.Error = string(err)
		}
	}()
	all := scenarios()
	if env.Scenario == "list" {
		res.Scenarios = slices.Sorted(maps.Keys(all))
	} else if scenario, known := all[env.Scenario]; known {
		fmt.Fprintln(os.Stderr, "---", env.Scenario, "on", env.Topic)
		scenario(env)
		res.counts = env.counts
	} else {
		failf("no scenario %s", env.Scenario)
	}
	res.OK = true
	return res
}
