package main

// request has the fields of all operations. A pointer is nil when its option is left out.
type request struct {
	ID int64  `json:"id"`
	Do string `json:"do"`

	// handles
	As          string `json:"as"`
	Client      string `json:"client"`
	Producer    string `json:"producer"`
	Consumer    string `json:"consumer"`
	Reader      string `json:"reader"`
	View        string `json:"view"`
	Handle      string `json:"handle"`
	Transaction string `json:"transaction"`

	// clients
	URL   string `json:"url"`
	Token string `json:"token"`
	Trust string `json:"trust"`

	// producers
	Topic       string   `json:"topic"`
	Name        string   `json:"name"`
	Access      string   `json:"access"`
	Batch       uint     `json:"batch"`
	Chunk       bool     `json:"chunk"`
	Compression string   `json:"compression"`
	Encrypt     *keyFile `json:"encrypt"`
	Schema      string   `json:"schema"`
	Messages    []record `json:"messages"`

	// consumers and readers
	Topics        []string `json:"topics"`
	Pattern       string   `json:"pattern"`
	Subscription  string   `json:"subscription"`
	Type          string   `json:"type"`
	Start         string   `json:"start"`
	Compacted     bool     `json:"compacted"`
	Queue         *int     `json:"queue"`
	Decrypt       string   `json:"decrypt"`
	CryptoFailure string   `json:"crypto-failure"`
	NackDelay     *int64   `json:"nack-delay"`
	DeadLetter    *letters `json:"dead-letter"`
	Retry         bool     `json:"retry"`
	BatchIndex    bool     `json:"batch-index"`
	HashRanges    [][]int  `json:"hash-ranges"`
	Receipt       bool     `json:"receipt"`
	Inclusive     bool     `json:"inclusive"`

	// what consumers do
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
	Delay   int64   `json:"delay"`
	Time    *int64  `json:"time"`
}

// record is a message to publish.
type record struct {
	Value       string            `json:"value"`
	Key         string            `json:"key"`
	OrderingKey string            `json:"ordering-key"`
	Properties  map[string]string `json:"properties"`
	EventTime   *int64            `json:"event-time"`
	Delay       int64             `json:"delay"`
	Sequence    *int64            `json:"sequence"`
}

type keyFile struct {
	Name   string `json:"name"`
	Public string `json:"public"`
}

type letters struct {
	Max   uint32 `json:"max"`
	Topic string `json:"topic"`
}

// handle names what the requests are in order for. A pending receive holds up only other ones.
func (r *request) handle() string {
	suffix := ""
	if r.Do == "receive" {
		suffix = " receive"
	}
	for _, each := range []string{r.As, r.Producer, r.Consumer, r.Reader, r.View, r.Handle, r.Transaction} {
		if each != "" {
			return each + suffix
		}
	}
	return ""
}
