// Load sends the same GET request to a server many times over and prints what came back as JSON.
//
// It is a compiled program so that it takes little of the processor that the server is measured on.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type headers map[string]string

func (h headers) String() string { return "" }

func (h headers) Set(text string) error {
	name, value, found := strings.Cut(text, ":")
	if !found {
		return fmt.Errorf("%q is not a header", text)
	}
	h[strings.TrimSpace(name)] = strings.TrimSpace(value)
	return nil
}

// A reply is what all replies of a run have to be.
type reply struct {
	Status int    `json:"status"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
}

type result struct {
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Median   float64 `json:"median"`
	Slow     float64 `json:"p99"`
	Reply    reply   `json:"reply"`
}

func main() {
	url := flag.String("url", "", "what to get")
	requests := flag.Int("requests", 1000, "how many requests in all")
	connections := flag.Int("connections", 2, "how many of them at a time")
	given := headers{}
	flag.Var(given, "header", "a header, `name: value`; more than once")
	flag.Parse()
	found, err := run(*url, *requests, *connections, given)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func run(url string, requests, connections int, given headers) (*result, error) {
	client := &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: connections,
			// Bodies are taken as they come: who wants them packed sends the header.
			DisableCompression: true,
		},
	}
	var next atomic.Int64
	var waiting sync.WaitGroup
	replies := make([]reply, connections)
	errors := make([]error, connections)
	taken := make([]float64, requests)
	start := time.Now()
	for worker := range replies {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			for number := next.Add(1) - 1; number < int64(requests); number = next.Add(1) - 1 {
				begin := time.Now()
				got, err := get(client, url, given)
				taken[number] = time.Since(begin).Seconds()
				first := replies[worker] == reply{}
				if err == nil && !first && got != replies[worker] {
					err = fmt.Errorf("the replies differ: %+v and %+v", replies[worker], got)
				}
				if err != nil {
					errors[worker] = err
					return
				}
				replies[worker] = got
			}
		}()
	}
	waiting.Wait()
	seconds := time.Since(start).Seconds()
	for _, err := range errors {
		if err != nil {
			return nil, err
		}
	}
	sort.Float64s(taken)
	// A connection may have come too late for a request of its own.
	for _, other := range replies {
		if replies[0] == (reply{}) {
			replies[0] = other
		}
		if other != replies[0] && other != (reply{}) {
			return nil, fmt.Errorf("the replies differ: %+v and %+v", replies[0], other)
		}
	}
	return &result{
		Requests: requests,
		Seconds:  seconds,
		Median:   taken[requests/2],
		Slow:     taken[requests*99/100],
		Reply:    replies[0],
	}, nil
}

func get(client *http.Client, url string, given headers) (reply, error) {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return reply{}, err
	}
	for name, value := range given {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	digest := sha256.New()
	bytes, err := io.Copy(digest, response.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{response.StatusCode, bytes, hex.EncodeToString(digest.Sum(nil)[:8])}, nil
}
