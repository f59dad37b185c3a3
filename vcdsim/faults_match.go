// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A subject is what rules are matched with.
type subject struct {
	task      bool
	operation string
	user, org string
	entities  []string // ids and names
	cell      int
}

// injector applies fault rules to requests.
type injector struct {
	cloud  *cloud
	faults *Faults
}

// faultFor returns the rule for a request, nil if none applies.
func (in *injector) faultFor(r *request) *Fault {
	if in.faults.empty() {
		return nil
	}
	of := in.subjectOf(r)
	return in.faults.take(func(f *Fault) bool { return f.matches(of) })
}

// subjectOf collects the caller and the entities of a request.
func (in *injector) subjectOf(r *request) subject {
	in.cloud.mu.Lock()
	defer in.cloud.mu.Unlock()
	of := subject{operation: r.op, cell: r.cell.number}
	of.user, of.org = in.caller(r)
	for _, v := range r.vars {
		of.entities = append(of.entities, in.idAndName(store.Bare(v))...)
	}
	switch {
	case len(r.body) == 0 || strings.HasPrefix(r.URL.Path, "/transfer/"):
	case r.cloudAPI():
		of.entities = append(of.entities, in.namedInJSON(r.body)...)
	default:
		of.entities = append(of.entities, in.namedInXML(r.body)...)
	}
	return of
}

// caller returns the user of the session, or the one who logs in by password or API token.
func (in *injector) caller(r *request) (user, org string) {
	if x := in.cloud.store.Sessions[r.token()]; x != nil {
		return x.User, x.Org
	}
	if name, _, ok := r.BasicAuth(); ok {
		user, org, _ = strings.Cut(name, "@")
		return user, org
	}
	if form, err := url.ParseQuery(string(r.body)); err == nil && strings.HasPrefix(r.URL.Path, "/oauth/") {
		return in.tokenOwner(form.Get("refresh_token"))
	}
	return "", ""
}

// tokenOwner returns the user who logs in with an API token.
func (in *injector) tokenOwner(token string) (user, org string) {
	if token == "" {
		return "", ""
	}
	for _, o := range in.cloud.store.Model.Orgs {
		for _, u := range o.Users {
			if slices.Contains(u.APITokens, token) {
				return u.Name, o.Name
			}
		}
	}
	for _, c := range in.cloud.store.Clients {
		if o := in.cloud.store.Org(c.OrgID); c.Token == token && o != nil {
			return c.User, o.Name
		}
	}
	return "", ""
}

// namedInXML are the names of the entity and disk that a body makes or changes, and of the VMs and disks it refers to.
func (in *injector) namedInXML(raw []byte) []string {
	tree, err := xmltree.Parse(raw)
	if err != nil {
		return nil // nothing to know it by
	}
	disk := tree.At("Disk")
	out := []string{tree.Attr("name"), disk.Attr("name")}
	refs := []string{disk.Attr("href")}
	for _, item := range slices.Concat(tree.All("SourcedItem"), tree.All("SourcedVmTemplateItem"),
		tree.All("CreateItem"), tree.All("CreateVm")) {
		out = append(out, item.Attr("name"), item.Str("VmGeneralParams", "Name"))
	}
	for _, item := range tree.All("DeleteItem") {
		refs = append(refs, item.Attr("href"))
	}
	for _, ref := range refs {
		out = append(out, in.idAndName(store.Bare(ref))...)
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// namedInJSON are the name in a JSON body, and its gateway and owner.
func (in *injector) namedInJSON(raw []byte) []string {
	var body struct {
		Name    string      `json:"name"`
		Gateway jsonRefBody `json:"gatewayRef"`
		Owner   jsonRefBody `json:"ownerRef"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil // nothing to know it by
	}
	out := []string{body.Name}
	for _, ref := range []jsonRefBody{body.Gateway, body.Owner} {
		out = append(out, in.idAndName(store.Bare(ref.ID))...)
	}
	return out
}

// idAndName are the id of an entity and its name, without what is empty.
func (in *injector) idAndName(id string) []string {
	if id == "" {
		return nil
	}
	return append([]string{id}, in.nameOf(id)...)
}

func (in *injector) nameOf(id string) []string {
	if name := in.cloud.store.GatewayName(id); name != "" {
		return []string{name}
	}
	for _, c := range namedCollections() {
		for _, d := range in.cloud.store.Documents[c.path] {
			if store.Bare(d.ID()) == id {
				return []string{store.Text(d.Body, "name")}
			}
		}
	}
	switch {
	case in.cloud.store.VMs[id] != nil:
		return []string{in.cloud.store.VMs[id].Name}
	case in.cloud.store.VApps[id] != nil:
		return []string{in.cloud.store.VApps[id].Name}
	case in.cloud.store.Disks[id] != nil:
		return []string{in.cloud.store.Disks[id].Name}
	default:
		return nil
	}
}

func (f *Fault) ofTasks() bool { return f.FailTask || f.AbortTask || f.StickTask }

// ofRequests reports whether the rule has an effect that only requests can have.
func (f *Fault) ofRequests() bool {
	acts := slices.Contains([]bool{f.Hang, f.DropBefore, f.DropAfter, f.Truncate, f.EndSession, f.RevokeToken}, true)
	return acts || f.SlowBody > 0 || f.Busy != "" || f.Body != "" || len(f.Header) > 0
}

func (f *Fault) matches(of subject) bool {
	return f.ofTasks() == of.task && f.covers(of.operation) &&
		(f.Cell == 0 || f.Cell == of.cell) &&
		(f.User == "" || f.User == of.user || f.User == of.user+"@"+of.org) &&
		(f.Entity == "" || slices.Contains(of.entities, f.Entity) || slices.Contains(of.entities, store.Bare(f.Entity)))
}

func (f *Fault) covers(operation string) bool {
	if f.Operation == "" || f.Operation == operation {
		return true
	}
	ok, err := path.Match(flat(f.Operation), flat(operation))
	return err == nil && ok
}

// flat takes the slashes out of a glob or an operation: a star matches them, too.
func flat(glob string) string { return strings.ReplaceAll(glob, "/", "\x00") }

// Validate returns what is wrong with a rule: it cannot match, or has no effect.
func (f *Fault) Validate() error {
	_, badGlob := path.Match(f.Operation, "")
	var errs []error
	for _, rule := range []struct {
		broken bool
		format string
		value  any
	}{
		{badGlob != nil, "operation %q: syntax error in pattern", f.Operation},
		{f.Probability < 0 || f.Probability > 1, "probability %v is not between 0 and 1", f.Probability},
		{
			min(f.Skip, f.Count, f.Cell) < 0,
			"%d is negative: skip, count and cell cannot be",
			min(f.Skip, f.Count, f.Cell),
		},
		{min(f.Delay, f.SlowBody) < 0, "%s is negative: delay and slowBody cannot be", min(f.Delay, f.SlowBody)},
		{f.Status != 0 && (f.Status < 200 || f.Status > 599), "status %d is not one of HTTP", f.Status},
		{
			!slices.Contains([]BusyText{"", BusyTenant, BusyProvider}, f.Busy),
			"busy %q is not tenant or provider",
			f.Busy,
		},
		{
			!slices.Contains([]BodyKind{"", BodyXML, BodyJSON, BodyHTML, BodyEmpty, BodyNothing}, f.Body),
			"body %q is not xml, json, html, empty or nothing",
			f.Body,
		},
		{
			f.ofTasks() && f.ofRequests(),
			"%s is of tasks: what happens to requests needs a rule of its own",
			"failTask, abortTask or stickTask",
		},
		{
			f.ofTasks() && !f.StickTask && f.Delay > 0,
			"delay %s is for stickTask, not for the other rules of tasks",
			f.Delay,
		},
		{!f.acts(), "it has no effect, such as %s", "status, busy, hang, dropBefore, dropAfter or delay"},
	} {
		if rule.broken {
			errs = append(errs, fmt.Errorf(rule.format, rule.value))
		}
	}
	return errors.Join(errs...)
}

func (f *Fault) acts() bool {
	acts := slices.Contains([]bool{
		f.ofTasks(),
		f.Hang,
		f.DropBefore,
		f.DropAfter,
		f.Truncate,
		f.EndSession,
		f.RevokeToken,
	}, true)
	return acts || f.Delay > 0 || f.SlowBody > 0 || f.Status != 0 || f.Busy != ""
}

// plainFault is a Fault without its methods.
type plainFault Fault

// faultJSON is a Fault in JSON: durations are written as "1m30s".
type faultJSON struct {
	plainFault

	Delay    string `json:"delay,omitempty"`
	SlowBody string `json:"slowBody,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (f Fault) MarshalJSON() ([]byte, error) {
	out := faultJSON{plainFault: plainFault(f)}
	if f.Delay > 0 {
		out.Delay = f.Delay.String()
	}
	if f.SlowBody > 0 {
		out.SlowBody = f.SlowBody.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler; unknown fields are errors.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var in faultJSON
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return err
	}
	*f = Fault(in.plainFault)
	for _, d := range []struct {
		text string
		into *time.Duration
	}{{in.Delay, &f.Delay}, {in.SlowBody, &f.SlowBody}} {
		if d.text == "" {
			continue
		}
		parsed, err := time.ParseDuration(d.text)
		if err != nil {
			return err
		}
		*d.into = parsed
	}
	return nil
}
