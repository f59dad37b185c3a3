// SPDX-License-Identifier: Apache-2.0

package cloudstacksim

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // CloudStack's signatures are made so.
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Error codes of the API.
const (
	codeUnauthorized = 401
	codeParameter    = 431
	codeUnsupported  = 432
	codeInternal     = 530
	codeAccount      = 531
	codeCapacity     = 533
	codeConflict     = 537
)

// jobCommand is the command that polls a job.
const jobCommand = "queryAsyncJobResult"

// A failure is an error response of the API.
type failure struct {
	code, cs int
	text     string
}

func (f *failure) Error() string { return f.text }

func invalid(text string) error { return &failure{codeParameter, 4350, text} }

// missing returns the error for an ID that does not exist or is not visible to the user.
func missing(name string) error {
	return &failure{
		codeParameter,
		9999,
		"Unable to execute API command due to invalid value. Invalid parameter " + name +
			" value due to incorrect long value format, or entity does not exist",
	}
}

// A call is a request of a user.
type call struct {
	sim *Simulator

	user    user
	command string
	form    url.Values
}

func (c *call) get(name string) string { return c.form.Get(strings.ToLower(name)) }

// ServeHTTP serves the API at any path.
func (s *Simulator) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		answer(to, http.StatusBadRequest, "errorresponse", err.Error())
		return
	}
	if s.opts.Before != nil {
		s.opts.Before(s, r.Form.Get("command"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		http.Error(to, "<html>away</html>", http.StatusServiceUnavailable)
		return
	}
	c := &call{sim: s, command: r.Form.Get("command"), form: url.Values{}}
	for name, values := range r.Form {
		c.form[strings.ToLower(name)] = values
	}
	key := strings.ToLower(c.command) + "response"
	if err := c.authenticate(r.Form); err != nil {
		refuse(to, key, err)
		return
	}
	if c.command != jobCommand {
		s.calls = append(s.calls, c.command)
	}
	fault := s.fault(c.command)
	s.associateConcurrently(fault, c.get("networkid"))
	if fault != nil && !fault.Done {
		refuse(to, key, &failure{fault.Code, 4250, "a fault of the test"})
		return
	}
	out, err := c.serve()
	switch {
	case fault != nil:
		refuse(to, key, &failure{fault.Code, 4250, "a fault of the test, after the command was carried out"})
	case err != nil:
		refuse(to, key, err)
	default:
		answer(to, http.StatusOK, key, out)
	}
}

// associateConcurrently associates the address of a fault with a network, as another client would.
func (s *Simulator) associateConcurrently(fault *Fault, network string) {
	for _, a := range s.objects[Addresses] {
		if fault != nil && fault.Comes != "" && a["ipaddress"] == fault.Comes {
			s.allocate(a, s.find(Networks, network))
		}
	}
}

func refuse(to http.ResponseWriter, key string, err error) {
	f, ok := err.(*failure) //nolint:errorlint // It is never wrapped.
	if !ok {
		f = &failure{codeInternal, 4250, err.Error()}
	}
	answer(to, f.code, key,
		Object{"uuidList": []string{}, "errorcode": f.code, "cserrorcode": f.cs, "errortext": f.text})
}

func answer(to http.ResponseWriter, status int, key string, body any) {
	to.Header().Set("Content-Type", "application/json")
	to.WriteHeader(status)
	_ = json.NewEncoder(to).Encode(Object{key: body})
}

// authenticate verifies the signature of a request as the CloudStack server does.
func (c *call) authenticate(form url.Values) error {
	bad := &failure{codeUnauthorized, 0, "unable to verify user credentials and/or request signature"}
	u, ok := c.sim.users[c.get("apiKey")]
	if !ok {
		return bad
	}
	var names, pairs []string
	for name := range form {
		if !strings.EqualFold(name, "signature") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := url.QueryEscape(form.Get(name))
		value = strings.NewReplacer("+", "%20", "~", "%7E", "%2A", "*").Replace(value)
		pairs = append(pairs, name+"="+value)
	}
	mac := hmac.New(sha1.New, []byte(u.secret))
	mac.Write([]byte(strings.ToLower(strings.Join(pairs, "&"))))
	if base64.StdEncoding.EncodeToString(mac.Sum(nil)) != c.get("signature") {
		return bad
	}
	if c.get("signatureVersion") == "3" {
		expires, err := time.Parse("2006-01-02T15:04:05Z0700", c.get("expires"))
		if err != nil || time.Now().After(expires) {
			return bad
		}
	}
	c.user = u
	return nil
}

// serve runs a command.
func (c *call) serve() (any, error) {
	if l, ok := lists[c.command]; ok {
		return c.list(l)
	}
	switch c.command {
	case jobCommand:
		return c.poll()
	case "listCapabilities":
		return Object{"capability": Object{"cloudstackversion": c.sim.opts.Version}}, nil
	case "listManagementServersMetrics":
		if c.user.admin {
			return Object{
				"count":            1,
				"managementserver": []Object{{"id": "1", "name": "ms", "version": c.sim.opts.Version}},
			}, nil
		}
	case "listLoadBalancerRuleInstances":
		return c.listMembers()
	case "listLBStickinessPolicies":
		return c.listPolicies()
	}
	write, ok := writes[c.command]
	if !ok {
		return nil, &failure{
			codeUnsupported,
			9999,
			"The given command '" + c.command + "' either does not exist, is not available for user, or not available from ip address",
		}
	}
	return c.start(write)
}

// Commands returns the names of the supported commands.
func Commands() []string {
	out := []string{
		jobCommand, "listCapabilities", "listManagementServersMetrics", "listLoadBalancerRuleInstances",
		"listLBStickinessPolicies",
	}
	return append(slices.AppendSeq(out, maps.Keys(lists)), slices.Collect(maps.Keys(writes))...)
}

// start executes a command and returns its job.
func (c *call) start(write func(*call) (any, error)) (any, error) {
	result, err := write(c)
	if _, early := err.(*failure); early { //nolint:errorlint // It is never wrapped.
		return nil, err
	}
	j := &job{done: time.Now().Add(c.sim.opts.Latency), status: 1, result: result}
	if late, ok := err.(*jobError); ok { //nolint:errorlint // It is never wrapped.
		j.status = 2
		j.result = Object{"errorcode": late.code, "errortext": late.text}
	}
	id := c.sim.id()
	c.sim.jobs[id] = j
	return Object{"jobid": id}, nil
}

// A jobError is the error of a failed job.
type jobError struct {
	code int
	text string
}

func (f *jobError) Error() string { return f.text }

func (c *call) poll() (any, error) {
	j, ok := c.sim.jobs[c.get("jobid")]
	switch {
	case !ok:
		return nil, missing("jobid")
	case time.Now().Before(j.done):
		return Object{"jobid": c.get("jobid"), "jobstatus": 0}, nil
	case j.status == 2:
		return Object{
			"jobid":         c.get("jobid"),
			"jobstatus":     2,
			"jobresultcode": codeInternal,
			"jobresulttype": "object",
			"jobresult":     j.result,
		}, nil
	}
	return Object{
		"jobid":         c.get("jobid"),
		"jobstatus":     1,
		"jobresultcode": 0,
		"jobresulttype": "object",
		"jobresult":     j.result,
	}, nil
}
