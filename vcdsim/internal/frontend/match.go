// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Injector applies fault rules to requests.
type Injector struct {
	Cloud  *cloud.Cloud
	Faults *faults.Faults
	Named  []*documents.Collection // collections whose documents rules can name
}

// faultFor returns the fault rule for a request, or nil if none applies.
func (in *Injector) faultFor(r *api.Request) *faults.Fault {
	if in.Faults.Empty() {
		return nil
	}
	of := in.subjectOf(r)
	return in.Faults.Take(func(f *faults.Fault) bool { return f.Matches(of) })
}

// subjectOf returns the caller and the entities of a request.
func (in *Injector) subjectOf(r *api.Request) faults.Subject {
	in.Cloud.Mu.Lock()
	defer in.Cloud.Mu.Unlock()
	of := faults.Subject{Operation: r.Operation, Cell: r.Cell.Number}
	of.User, of.Org = in.caller(r)
	for _, v := range r.Vars {
		of.Entities = append(of.Entities, in.IDAndName(store.Bare(v))...)
	}
	switch {
	case len(r.Content) == 0 || strings.HasPrefix(r.URL.Path, "/transfer/"):
	case r.CloudAPI():
		of.Entities = append(of.Entities, in.namedInJSON(r.Content)...)
	default:
		of.Entities = append(of.Entities, in.namedInXML(r.Content)...)
	}
	return of
}

// caller returns the user of the session, or the user who logs in with a password or an API token.
func (in *Injector) caller(r *api.Request) (user, org string) {
	if x := in.Cloud.Store.Sessions[r.Token()]; x != nil {
		return x.User, x.Org
	}
	if name, _, ok := r.BasicAuth(); ok {
		user, org, _ = strings.Cut(name, "@")
		return user, org
	}
	if form, err := url.ParseQuery(string(r.Content)); err == nil && strings.HasPrefix(r.URL.Path, "/oauth/") {
		return in.tokenOwner(form.Get("refresh_token"))
	}
	return "", ""
}

// tokenOwner returns the user of an API token.
func (in *Injector) tokenOwner(token string) (user, org string) {
	if token == "" {
		return "", ""
	}
	for _, o := range in.Cloud.Store.Model.Orgs {
		for _, u := range o.Users {
			if slices.Contains(u.APITokens, token) {
				return u.Name, o.Name
			}
		}
	}
	for _, c := range in.Cloud.Store.Clients {
		if o := in.Cloud.Store.Org(c.OrgID); c.Token == token && o != nil {
			return c.User, o.Name
		}
	}
	return "", ""
}

// namedInXML returns the names of the entity and the disk that a body creates or changes, and of the VMs and disks that
// it refers to.
func (in *Injector) namedInXML(raw []byte) []string {
	tree, err := xmltree.Parse(raw)
	if err != nil {
		return nil // the body names no entity
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
		out = append(out, in.IDAndName(store.Bare(ref))...)
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// namedInJSON returns the name in a JSON body and those of its gateway and owner.
func (in *Injector) namedInJSON(raw []byte) []string {
	var body struct {
		Name    string               `json:"name"`
		Gateway gateways.JSONRefBody `json:"gatewayRef"`
		Owner   gateways.JSONRefBody `json:"ownerRef"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil // the body names no entity
	}
	out := []string{body.Name}
	for _, ref := range []gateways.JSONRefBody{body.Gateway, body.Owner} {
		out = append(out, in.IDAndName(store.Bare(ref.ID))...)
	}
	return out
}

// IDAndName returns the ID and the name of an entity, omitting empty ones.
func (in *Injector) IDAndName(id string) []string {
	if id == "" {
		return nil
	}
	return append([]string{id}, in.nameOf(id)...)
}

func (in *Injector) nameOf(id string) []string {
	if name := in.Cloud.Store.GatewayName(id); name != "" {
		return []string{name}
	}
	for _, c := range in.Named {
		for _, d := range in.Cloud.Store.Documents[c.Path] {
			if store.Bare(d.ID()) == id {
				return []string{store.Text(d.Body, "name")}
			}
		}
	}
	switch {
	case in.Cloud.Store.VMs[id] != nil:
		return []string{in.Cloud.Store.VMs[id].Name}
	case in.Cloud.Store.VApps[id] != nil:
		return []string{in.Cloud.Store.VApps[id].Name}
	case in.Cloud.Store.Disks[id] != nil:
		return []string{in.Cloud.Store.Disks[id].Name}
	default:
		return nil
	}
}
