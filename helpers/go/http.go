package pulsarium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// call sends a request to the broker and reads the JSON of its answer into found. A refusal fails the test.
func (b *Broker) call(method, path string, query url.Values, body, found any) {
	b.t.Helper()
	status, said, err := send(method, b.AdminURL+path+"?"+query.Encode(), body)
	if err != nil {
		b.t.Fatalf("no broker answers at %s: %v", b.AdminURL, err)
	}
	gone := method == http.MethodDelete && status == http.StatusNotFound
	if status >= http.StatusBadRequest && !gone {
		b.t.Fatalf("%s %s: status %d: %s", method, path, status, said)
	}
	if found == nil {
		return
	}
	if err := json.Unmarshal(said, found); err != nil {
		b.t.Fatalf("%s %s: the answer is not JSON as expected: %v", method, path, err)
	}
}

func send(method, target string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, fmt.Errorf("the request is not JSON: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, target, content)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := direct.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	return answer.StatusCode, said, err
}

// direct sends requests past the proxies of the environment.
var direct = &http.Client{Transport: &http.Transport{}}
