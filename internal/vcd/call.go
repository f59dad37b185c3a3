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

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// versionPlaceholder stands for the API version until the request is sent: it may be agreed on anew.
const versionPlaceholder = "VERSION"

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

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
func (s *Session) do(ctx context.Context, c call) ([]byte, error) {
	_, body, err := s.exchange(ctx, c)
	return body, err
}

// exchange is do with the header of the answer.
func (s *Session) exchange(ctx context.Context, c call) (http.Header, []byte, error) {
	address := s.sdk.VCDHREF
	address.Path = c.path
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	sdk := s.sdk // a copy: the SDK's methods want a pointer
	req := sdk.NewRequestWithApiVersion(nil, c.method, address, body, versionPlaceholder)
	req.URL.RawQuery = c.query
	if c.json {
		req.Header.Set("Accept", "application/json;version="+versionPlaceholder)
	}
	if c.contentType != "" {
		req.Header.Set("Content-Type", c.contentType)
	}
	if c.ifMatch != "" {
		req.Header.Set("If-Match", c.ifMatch)
	}
	if err := s.addTenant(ctx, c, req); err != nil {
		return nil, nil, err
	}
	ctx, keeper := withFailureKeeper(ctx)
	resp, err := sdk.Http.Do(req.WithContext(ctx))
	if err != nil {
		if keeper.err != nil {
			return nil, nil, keeper.err
		}
		return nil, nil, &connectionError{ErrUnavailable, s.site.base + " cannot be reached: " + rootCause(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices && keeper.err != nil {
		return nil, nil, keeper.err
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.Header, answer, err
}

// addTenant says which organisation a provider's session works in; a tenant's session has only one.
func (s *Session) addTenant(ctx context.Context, c call, req *http.Request) error {
	if !s.provider || isSystem(s.config.Org) || c.path == "/api/query" && strings.HasPrefix(c.query, "type=organization&") {
		return nil
	}
	org, err := s.orgID(ctx)
	if err != nil {
		return err
	}
	req.Header.Set("X-Vmware-Vcloud-Tenant-Context", uuidOf(org))
	return nil
}

// orgID finds the URN of the organisation that a provider's session works in.
func (s *Session) orgID(ctx context.Context) (string, error) {
	return lookup(ctx, s.lookups, "org", func(ctx context.Context) (string, error) {
		if err := checkName("organization", s.config.Org, ""); err != nil {
			return "", err
		}
		var found types.QueryResultRecordsType
		if err := s.queryPage(ctx, "organization", allOf(term{"name", s.config.Org}), 1, "", &found); err != nil {
			return "", fmt.Errorf("looking up organization %s: %w", s.config.Org, err)
		}
		for _, record := range found.OrgRecord {
			if record.Name == s.config.Org {
				return urnOf(kindOrg, record.HREF), nil
			}
		}
		return "", &LookupError{Kind: "organization", Name: s.config.Org, Err: ErrNotFound}
	})
}

// getXML reads an object of the XML API.
func (s *Session) getXML(ctx context.Context, path string, into any) error {
	body, err := s.do(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return decodeXML(body, into)
}

// getJSON reads an object of the JSON API.
func (s *Session) getJSON(ctx context.Context, path, query string, into any) error {
	body, err := s.do(ctx, call{method: http.MethodGet, path: path, query: query, json: true})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &connectionError{ErrUnavailable, "the answer is not JSON of VCD"}
	}
	return nil
}

// start sends a call of the XML API that starts a task. What to send may be nil.
func (s *Session) start(ctx context.Context, method, path, contentType string, what any) (Task, error) {
	c := call{method: method, path: path}
	if what != nil {
		body, err := encodeXML(what)
		if err != nil {
			return Task{}, err
		}
		c.body, c.contentType = body, contentType
	}
	return s.startRaw(ctx, c)
}

func (s *Session) startRaw(ctx context.Context, c call) (Task, error) {
	body, err := s.do(ctx, c)
	if err != nil {
		return Task{}, err
	}
	var t types.Task
	if err := decodeXML(body, &t); err != nil {
		return Task{}, err
	}
	return s.taskFrom(&t), nil
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
