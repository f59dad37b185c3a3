package vcd

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// versionPlaceholder stands for the API version until the request is sent: it may be agreed on anew.
const versionPlaceholder = "VERSION"

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// A client makes the requests of a session.
type client struct {
	site     *site
	sdk      govcd.Client // builds requests; never changed after construction
	config   Config
	opts     PoolOptions
	provider bool // logged in to the System organisation
	lookups  *cache
}

// A call is one request to VCD. The query is raw, because VCD wants the operators of filters bare.
type call struct {
	method      string
	path        string
	query       string
	contentType string
	body        []byte
	json        bool   // the JSON API
	ifMatch     string // ETag of the version that may be replaced; empty for any
}

// do sends a call through the SDK's client and returns the body of the answer.
func (c *client) do(ctx context.Context, r call) ([]byte, error) {
	_, body, err := c.exchange(ctx, r)
	return body, err
}

// exchange is do with the header of the answer.
func (c *client) exchange(ctx context.Context, r call) (http.Header, []byte, error) {
	address := c.sdk.VCDHREF
	address.Path = r.path
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	sdk := c.sdk // a copy: the SDK's methods want a pointer
	req := sdk.NewRequestWithApiVersion(nil, r.method, address, body, versionPlaceholder)
	req.URL.RawQuery = r.query
	if r.json {
		req.Header.Set("Accept", "application/json;version="+versionPlaceholder)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	if err := c.addTenant(ctx, r, req); err != nil {
		return nil, nil, err
	}
	ctx, keeper := withFailureKeeper(ctx)
	resp, err := sdk.Http.Do(req.WithContext(ctx))
	if err != nil {
		if keeper.err != nil {
			return nil, nil, keeper.err
		}
		return nil, nil, &connectionError{ErrUnavailable, c.site.base + " cannot be reached: " + rootCause(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices && keeper.err != nil {
		return nil, nil, keeper.err
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.Header, answer, err
}

// addTenant says which organisation a provider's session works in; a tenant's session has only one.
func (c *client) addTenant(ctx context.Context, r call, req *http.Request) error {
	if !c.provider || isSystem(c.config.Org) || r.path == "/api/query" && strings.HasPrefix(r.query, "type=organization&") {
		return nil
	}
	org, err := c.orgID(ctx)
	if err != nil {
		return err
	}
	req.Header.Set("X-Vmware-Vcloud-Tenant-Context", uuidOf(org))
	return nil
}

// orgID finds the URN of the organisation that a provider's session works in.
func (c *client) orgID(ctx context.Context) (string, error) {
	return lookup(ctx, c.lookups, "org", func(ctx context.Context) (string, error) {
		if err := checkName("organization", c.config.Org, ""); err != nil {
			return "", err
		}
		var found types.QueryResultRecordsType
		if err := c.queryPage(ctx, "organization", allOf(term{"name", c.config.Org}), 1, "", &found); err != nil {
			return "", fmt.Errorf("looking up organization %s: %w", c.config.Org, err)
		}
		for _, record := range found.OrgRecord {
			if record.Name == c.config.Org {
				return urnOf(kindOrg, record.HREF), nil
			}
		}
		return "", &LookupError{Kind: "organization", Name: c.config.Org, Err: ErrNotFound}
	})
}

// getXML reads an object of the XML API.
func (c *client) getXML(ctx context.Context, path string, into any) error {
	body, err := c.do(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return decodeXML(body, into)
}

// getJSON reads an object of the JSON API.
func (c *client) getJSON(ctx context.Context, path, query string, into any) error {
	body, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, json: true})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &connectionError{ErrUnavailable, "the answer is not JSON of VCD"}
	}
	return nil
}

// start sends a call of the XML API that starts a task. What to send may be nil.
func (c *client) start(ctx context.Context, method, path, contentType string, what any) (Task, error) {
	r := call{method: method, path: path}
	if what != nil {
		body, err := encodeXML(what)
		if err != nil {
			return Task{}, err
		}
		r.body, r.contentType = body, contentType
	}
	return c.startRaw(ctx, r)
}

func (c *client) startRaw(ctx context.Context, r call) (Task, error) {
	body, err := c.do(ctx, r)
	if err != nil {
		return Task{}, err
	}
	var t types.Task
	if err := decodeXML(body, &t); err != nil {
		return Task{}, err
	}
	return taskFrom(&t), nil
}

func encodeXML(what any) ([]byte, error) {
	body, err := xml.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return append([]byte(xmlHeader), body...), nil
}

func decodeXML(body []byte, into any) error {
	if err := xml.Unmarshal(body, into); err != nil {
		return &connectionError{ErrUnavailable, "the answer is not XML of VCD"}
	}
	return nil
}

// params writes a query string in the given order: names and values alternate, values are written as they are.
func params(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+"="+pairs[i+1])
		}
	}
	return strings.Join(parts, "&")
}

// jsonFilter encodes a filter for the JSON API, which wants it encoded as a whole.
func jsonFilter(terms ...term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.field + "==" + t.value
	}
	return url.QueryEscape(strings.Join(parts, ";"))
}
