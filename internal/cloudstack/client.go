// SPDX-License-Identifier: Apache-2.0

// Package cloudstack is a client of Apache CloudStack's API, with the commands that a cloud controller manager needs.
// It signs requests, reads all pages of lists, waits for asynchronous jobs, and classifies errors. It has no code for
// Kubernetes. Requests use POST, so that neither keys nor signatures are part of a URL, which errors and proxies show.
package cloudstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

const (
	// maxPages is the maximum number of pages of a list.
	maxPages = 1000
	// maxResponse is the maximum size of a response, in bytes.
	maxResponse = 64 << 20
	// defaultPoll and defaultPatience are the polling interval of jobs and the maximum duration of a job.
	defaultPoll, defaultPatience = time.Second, 3 * time.Minute
	// defaultTimeout is the timeout of a request, including its response.
	defaultTimeout = time.Minute
)

// Options configure a [Client].
type Options struct {
	// URL of the API, such as https://cloud.example.com/client/api.
	URL string
	// Key and Secret of the user.
	Key, Secret string
	// Keys returns the current key and secret of the user, for each request. Nil means that Key and Secret do not
	// change.
	Keys func() (key, secret string)
	// Project is the ID of the project to work in; empty means the user's account.
	Project string
	// CA are the trusted certificate authorities in PEM format, instead of those of the system; empty means those of
	// the system.
	CA string
	// Insecure trusts any certificate.
	Insecure bool
	// UserAgent of requests.
	UserAgent string
	// Poll is the polling interval of running jobs, and Patience the maximum duration of a job; 0 means 1 s and 3 min.
	Poll, Patience time.Duration
	// Timeout of one request; 0 means 1 min.
	Timeout time.Duration
	// Metrics count requests. Nil disables them.
	Metrics *Metrics
	// Now returns the time. Nil means real time.
	Now func() time.Time
}

// A Client calls CloudStack. It is safe for concurrent use.
type Client struct {
	opts Options
	http *http.Client
}

// New returns a client.
func New(o Options) *Client {
	o.Poll = cmp.Or(o.Poll, defaultPoll)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keys == nil {
		o.Keys = func() (key, secret string) { return o.Key, o.Secret }
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure} //nolint:gosec // As configured.
	if o.CA != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(o.CA))
	}
	transport := &http.Transport{
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: 15 * time.Second,
	}
	siteproxy.Use(transport)
	return &Client{
		opts: o,
		http: &http.Client{
			Transport: transport,
			Timeout:   cmp.Or(o.Timeout, defaultTimeout),
			// A redirect would send the signed request to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes idle connections.
func (c *Client) Close(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// Params are the parameters of a command. Empty ones are omitted.
type Params map[string]string

// call runs a command, and decodes its response.
func (c *Client) call(ctx context.Context, command string, params Params, into any) error {
	start := c.opts.Now()
	err := c.send(ctx, command, params, into)
	c.opts.Metrics.observe(command, err, c.opts.Now().Sub(start))
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, command string, params Params, into any) error {
	key, secret := c.opts.Keys()
	form := url.Values{
		"command":          {command},
		"response":         {"json"},
		"apiKey":           {key},
		"signatureVersion": {"3"},
		"expires":          {c.opts.Now().UTC().Add(expiry).Format("2006-01-02T15:04:05-0700")},
	}
	for name, value := range params {
		if value != "" {
			form.Set(name, value)
		}
	}
	form.Set("signature", sign(form, secret))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", c.opts.UserAgent)
	answer, err := c.http.Do(request)
	if err != nil {
		return requestError(request, err)
	}
	defer answer.Body.Close()
	if err := siteproxy.Refused(request, answer); err != nil {
		return requestError(request, err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil {
		return requestError(request, err)
	}
	return decode(command, answer.StatusCode, body, into)
}

// decode decodes a response, which is an object with one key. The key is that of the command, or another one if
// CloudStack rejects the request early.
func decode(command string, status int, body []byte, into any) error {
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		if status == http.StatusOK {
			status = http.StatusBadGateway
		}
		return &Error{Code: status, Text: "the response is not from CloudStack"}
	}
	inner := envelope[strings.ToLower(command)+"response"]
	if inner == nil {
		inner = envelope["errorresponse"]
	}
	var failed Error
	if inner == nil || json.Unmarshal(inner, &failed) != nil || failed.Code != 0 || status != http.StatusOK {
		failed.Code = cmp.Or(failed.Code, status)
		return &failed
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(bytes.NewReader(inner)).Decode(into); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	return nil
}

// list returns all elements of a list. A list that changes between its pages may lack elements. It is read again once,
// and fails if it changes again.
func list[T any](ctx context.Context, c *Client, command, key string, params Params) ([]T, error) {
	out, err := pages[T](ctx, c, command, key, params)
	if errors.Is(err, ErrChanged) {
		out, err = pages[T](ctx, c, command, key, params)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// shown is like list, but for callers that can use an incomplete list. If the list changes on both reads, it returns
// each listed element once, with [ErrChanged].
func shown[T any](ctx context.Context, c *Client, command, key string, params Params, id func(T) string) ([]T, error) {
	first, err := pages[T](ctx, c, command, key, params)
	if !errors.Is(err, ErrChanged) {
		return first, err
	}
	second, err := pages[T](ctx, c, command, key, params)
	if !errors.Is(err, ErrChanged) {
		return second, err
	}
	known := map[string]bool{}
	var out []T
	for _, element := range slices.Concat(second, first) { // the second is newer
		if !known[id(element)] {
			known[id(element)] = true
			out = append(out, element)
		}
	}
	return out, err
}

// pages reads all pages of a list. The first page has the default size of CloudStack, which rejects larger pages, and
// determines the size of the others. If the list changes in the meantime, it returns the listed elements, with
// [ErrChanged].
func pages[T any](ctx context.Context, c *Client, command, key string, filters Params) ([]T, error) {
	params := Params{"listall": "true", "projectid": c.opts.Project}
	maps.Copy(params, filters)
	var out []T
	total := 0
	changed := false
	for page := 1; page <= maxPages; page++ {
		if page > 1 {
			params["page"] = strconv.Itoa(page)
		}
		var answer map[string]json.RawMessage
		if err := c.call(ctx, command, params, &answer); err != nil {
			return nil, failing(err)
		}
		count := 0
		found := []T(nil)
		if err := errors.Join(element(answer, "count", &count), element(answer, key, &found)); err != nil {
			return nil, fmt.Errorf("%s: reading the response: %w", command, err)
		}
		if page == 1 {
			total = count
			params["pagesize"] = strconv.Itoa(len(found))
		}
		changed = changed || count != total
		out = append(out, found...)
		if len(out) < count && len(found) > 0 {
			continue
		}
		if changed || len(out) < total {
			return out, fmt.Errorf("%s: %w", command, ErrChanged)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: %w: the response has more than %d pages", command, ErrUnavailable, maxPages)
}

func element(answer map[string]json.RawMessage, key string, into any) error {
	if raw := answer[key]; raw != nil {
		return json.Unmarshal(raw, into)
	}
	return nil
}

// A job is an asynchronous command.
type job struct {
	ID     string          `json:"jobid"`
	Status int             `json:"jobstatus"`
	Code   int             `json:"jobresultcode"`
	Result json.RawMessage `json:"jobresult"`
}

// States of jobs.
const (
	jobRunning = iota
	jobDone
)

// run runs an asynchronous command, and waits until it is done. key is the key of the result, or empty if there is
// none.
func (c *Client) run(ctx context.Context, command string, params Params, key string, into any) error {
	var started job
	if err := c.call(ctx, command, params, &started); err != nil {
		return err
	}
	if started.ID == "" {
		return fmt.Errorf("%s: the response has no job: %w", command, ErrUnavailable)
	}
	result, err := c.wait(ctx, started.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if into == nil {
		return nil
	}
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(result, &answer); err != nil || element(answer, key, into) != nil {
		return fmt.Errorf("%s: the result of the job cannot be read: %w", command, ErrUnavailable)
	}
	return nil
}

// wait polls a job until it is done.
func (c *Client) wait(ctx context.Context, id string) (json.RawMessage, error) {
	poll := time.NewTicker(c.opts.Poll)
	end := time.NewTimer(c.opts.Patience)
	defer poll.Stop()
	defer end.Stop()
	for {
		var now job
		switch err := c.call(ctx, "queryAsyncJobResult", Params{"jobid": id}, &now); {
		case err != nil:
			return nil, err
		case now.Status == jobDone:
			return now.Result, nil
		case now.Status != jobRunning:
			failed := Error{Code: now.Code, Text: "the job failed"}
			_ = json.Unmarshal(now.Result, &failed)
			return nil, &failed
		}
		select {
		case <-poll.C:
		case <-end.C:
			return nil, fmt.Errorf("the job %s is still running after %s: %w", id, c.opts.Patience, ErrBusy)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the job %s: %w", id, ctx.Err())
		}
	}
}
