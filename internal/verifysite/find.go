// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// find lists the objects of a kind with the marker of any run.
func (m remover) find(ctx context.Context, k kind, in place) ([]Leftover, error) {
	switch k {
	case kindVApp:
		return m.findVApps(ctx, in)
	case kindDisk:
		return m.findDisks(ctx, in)
	case kindEntity:
		return m.findEntities(ctx)
	case kindProfile:
		return m.findProfiles(ctx)
	case kindGroup:
		return m.findGroups(ctx)
	default:
	}
	var all []Leftover
	for _, gateway := range in.gateways {
		found, err := m.findOnGateway(ctx, k, gateway)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// marked returns the objects with the marker of a run. Lists may lack descriptions, so it reads each object whose name
// matches.
func (m remover) marked(ctx context.Context, k kind, refs []vcd.Ref, pathOf func(id string) string) ([]Leftover, error) {
	var all []Leftover
	for _, ref := range refs {
		if runName.FindString(ref.Name) == "" {
			continue
		}
		x := Leftover{Kind: string(k), Name: ref.Name, kind: k, id: ref.ID, path: pathOf(ref.ID)}
		run, err := m.owner(ctx, x)
		switch {
		case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden):
			continue
		case err != nil:
			return nil, err
		case run != "":
			x.Run = run
			all = append(all, x)
		case m.isOurs(ref.Name):
			return nil, errUnmarked
		}
	}
	return all, nil
}

// errUnmarked means that an object has a name of this run but not its marker, so nothing proves that it belongs to the
// run.
var errUnmarked = errors.New("an object has a name of this run but not its marker: check it in VCD")

// isOurs reports whether a name belongs to this run.
func (m remover) isOurs(name string) bool {
	return m.run != "" && strings.HasPrefix(name, nameOf(m.run, ""))
}

// owner reads an object and returns the run that it belongs to, by its marker and its name, or the empty string.
func (m remover) owner(ctx context.Context, x Leftover) (string, error) {
	isXML := x.kind == kindVApp || x.kind == kindDisk
	got, err := m.calls.session.Raw(ctx, vcd.RawCall{Method: http.MethodGet, Path: x.path, JSON: !isXML, Version: x.version})
	if err != nil {
		return "", err
	}
	if isXML {
		return ownerInXML(got.Body)
	}
	var doc struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Comments    string `json:"comments"`   // set for firewall rules
		ExternalID  string `json:"externalId"` // set for entities
	}
	if err := json.Unmarshal(got.Body, &doc); err != nil {
		return "", fmt.Errorf("reading %s: %w", x.Name, err)
	}
	return runOf(doc.Name, cmp.Or(doc.Description, doc.Comments, doc.ExternalID)), nil
}

// ownerInXML returns the run of a vApp or a disk. A vApp belongs to a run only if all of its VMs do.
func ownerInXML(body []byte) (string, error) {
	type object struct {
		Name        string `xml:"name,attr"`
		Description string `xml:"Description"`
	}
	var doc struct {
		object

		VMs []object `xml:"Children>Vm"`
	}
	if err := xml.Unmarshal(body, &doc); err != nil {
		return "", fmt.Errorf("reading an object: %w", err)
	}
	run := runOf(doc.Name, doc.Description)
	for _, vm := range doc.VMs {
		if runOf(vm.Name, vm.Description) != run {
			return "", nil
		}
	}
	return run, nil
}

func refsOf[T any](all []T, ref func(T) vcd.Ref) []vcd.Ref {
	refs := make([]vcd.Ref, 0, len(all))
	for _, x := range all {
		refs = append(refs, ref(x))
	}
	return refs
}

// pathIn returns a function that returns the path of an object in a collection.
func pathIn(collection string) func(string) string {
	return func(id string) string { return collection + "/" + url.PathEscape(id) }
}

func (m remover) findVApps(ctx context.Context, in place) ([]Leftover, error) {
	records, err := m.calls.session.VApps.List(ctx)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r vcd.VAppRecord) bool {
		return !slices.ContainsFunc(in.vdcs, func(v vcd.Ref) bool { return v.ID == r.VDC.ID })
	})
	return m.marked(ctx, kindVApp, refsOf(records, func(r vcd.VAppRecord) vcd.Ref { return r.Ref }), vAppPath)
}

func (m remover) findDisks(ctx context.Context, in place) ([]Leftover, error) {
	var refs []vcd.Ref
	for _, v := range in.vdcs {
		disks, err := m.calls.session.Disks.NamedDisks(ctx, vcd.VDC{Ref: v})
		if err != nil {
			return nil, err
		}
		refs = append(refs, refsOf(disks, func(d vcd.NamedDisk) vcd.Ref { return d.Ref })...)
	}
	return m.marked(ctx, kindDisk, refs, diskPath)
}

func diskPath(id string) string { return "/api/disk/" + uuidOf(id) }

func (m remover) findEntities(ctx context.Context) ([]Leftover, error) {
	entities, err := m.calls.session.Entities.OfType(ctx, entityVendor, entityNSS, "1")
	if err != nil {
		return nil, err
	}
	return m.marked(ctx, kindEntity, refsOf(entities, func(e vcd.Entity) vcd.Ref { return e.Ref }), pathIn(entityPath))
}

func (m remover) findProfiles(ctx context.Context) ([]Leftover, error) {
	profiles, err := m.calls.session.NAT.PortProfiles(ctx)
	if err != nil {
		return nil, err
	}
	return m.marked(ctx, kindProfile, refsOf(profiles, func(p vcd.PortProfile) vcd.Ref { return p.Ref }), pathIn(profilePath))
}

func (m remover) findGroups(ctx context.Context) ([]Leftover, error) {
	sets, err := m.calls.session.Firewall.IPSets(ctx, "")
	if err != nil {
		return nil, err
	}
	return m.marked(ctx, kindGroup, refsOf(sets, func(s vcd.IPSet) vcd.Ref { return s.Ref }), pathIn(groupPath))
}

// findOnGateway lists the objects of a kind on an edge gateway.
func (m remover) findOnGateway(ctx context.Context, k kind, gateway string) ([]Leftover, error) {
	switch k {
	case kindService:
		all, err := m.calls.session.Balancers.VirtualServices(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return m.marked(ctx, k, refsOf(all, func(s vcd.VirtualService) vcd.Ref { return s.Ref }), pathIn(servicePath))
	case kindPool:
		all, err := m.calls.session.Balancers.Pools(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return m.marked(ctx, k, refsOf(all, func(p vcd.ServerPool) vcd.Ref { return p.Ref }), pathIn(poolPath))
	case kindNAT:
		all, err := m.calls.session.NAT.Rules(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return m.marked(ctx, k, refsOf(all, func(r vcd.NATRule) vcd.Ref { return r.Ref }),
			pathIn(gatewayPath+url.PathEscape(gateway)+"/nat/rules"))
	case kindFirewall:
		return m.findFirewallRules(ctx, gateway)
	default:
		return nil, nil
	}
}

// findFirewallRules reads the rules in the newest API version, because a rule may have been created in any version.
func (m remover) findFirewallRules(ctx context.Context, gateway string) ([]Leftover, error) {
	if len(m.versions) == 0 {
		return nil, nil
	}
	newest := m.versions[len(m.versions)-1]
	path := firewallRules(gateway, newest)
	got, err := m.calls.session.Raw(ctx, vcd.RawCall{Method: http.MethodGet, Path: path, JSON: true, Version: newest})
	if err != nil {
		return nil, err
	}
	var list struct {
		Rules []struct {
			ID          string `json:"id"`
			Name        string `json:"name"`
			Description string `json:"description"`
			Comments    string `json:"comments"`
		} `json:"userDefinedRules"`
	}
	if err := json.Unmarshal(got.Body, &list); err != nil {
		return nil, fmt.Errorf("reading firewall rules: %w", err)
	}
	var all []Leftover
	for _, r := range list.Rules {
		run := runOf(r.Name, cmp.Or(r.Description, r.Comments))
		if run == "" && m.isOurs(r.Name) {
			return nil, errUnmarked
		}
		if run != "" {
			all = append(all, Leftover{
				Run:     run,
				Kind:    string(kindFirewall),
				Name:    r.Name,
				kind:    kindFirewall,
				id:      r.ID,
				path:    path + "/" + url.PathEscape(r.ID),
				version: newest,
			})
		}
	}
	return all, nil
}

// secondFirewall is the first API version with the second form of firewall rules.
const secondFirewall = "38.1"

// firewallRules returns the path of a gateway's rules in an API version.
func firewallRules(gateway, version string) string {
	path := gatewayPath
	if vcd.CompareVersions(version, secondFirewall) >= 0 {
		path = firewallPath
	}
	return path + url.PathEscape(gateway) + "/firewall/rules"
}
