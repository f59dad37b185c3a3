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
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	firewallPath = "/cloudapi/2.0.0/edgeGateways/"
	gatewayPath  = "/cloudapi/1.0.0/edgeGateways/"
	servicePath  = "/cloudapi/1.0.0/loadBalancer/virtualServices"
	poolPath     = "/cloudapi/1.0.0/loadBalancer/pools"
	profilePath  = "/cloudapi/1.0.0/applicationPortProfiles"
	groupPath    = "/cloudapi/1.0.0/firewallGroups"
	entityPath   = "/cloudapi/1.0.0/entities"
)

// settling is how long the removal waits for tasks of the run that an interrupted request started.
const settling = time.Minute

// A Leftover is an object that carries the mark of a run.
type Leftover struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`
	Name string `json:"name"`

	kind kind
	id   string
	path string // of the object
	// version of the API in which it is read; empty: the agreed one
	version string
}

// A place is where leftovers may be.
type place struct {
	vdcs     []vcd.Ref
	gateways []string // URNs
}

// removal is the order in which kinds of objects are removed: users before what they use.
var removal = []kind{
	kindService, kindPool, kindNAT, kindProfile, kindGroup, kindFirewall, kindEntity, kindVApp, kindDisk,
}

// Leftovers finds what runs left in the organization, in the order of its removal. Hidden are the kinds that the user is
// not shown.
func Leftovers(ctx context.Context, s *vcd.Session) (left []Leftover, hidden []string, err error) {
	b := &bench{session: s, poll: defaultPoll}
	if err := b.findVersions(ctx, Options{}); err != nil {
		return nil, nil, err
	}
	where := place{}
	if where.vdcs, err = s.VDCs.List(ctx); err != nil {
		return nil, nil, err
	}
	gateways, err := s.Gateways.Visible(ctx)
	if unlessHidden(err) != nil {
		return nil, nil, err
	}
	for _, g := range gateways {
		where.gateways = append(where.gateways, g.ID)
	}
	for _, k := range removal {
		found, err := b.find(ctx, k, where)
		if unlessHidden(err) != nil {
			return nil, nil, fmt.Errorf("looking for %s: %w", k, err)
		}
		if errors.Is(err, vcd.ErrForbidden) {
			hidden = append(hidden, string(k))
		}
		left = append(left, found...)
	}
	return left, hidden, nil
}

// CleanUp removes leftovers, each after another look at it.
func CleanUp(ctx context.Context, s *vcd.Session, left []Leftover, o Options) error {
	b := &bench{session: s, poll: cmp.Or(o.Poll, defaultPoll), report: o.Step}
	var errs []error
	for _, x := range left {
		b.step("Removing " + x.Name)
		if err := b.removeOne(ctx, x); err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", x.Name, err))
		}
	}
	return errors.Join(errs...)
}

// remove removes all that the run created, also what a request created whose answer did not arrive.
func (b *bench) remove(ctx context.Context) error {
	if err := b.sweep(ctx, removal...); err != nil || !b.doubtful {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	return b.sweep(ctx, removal...)
}

// settle waits a while for tasks that the run may have started without having the answer.
func (b *bench) settle(ctx context.Context) error {
	deadline := time.Now().Add(settling)
	for time.Now().Before(deadline) {
		tasks, err := b.session.Tasks.Since(ctx, b.began)
		if err != nil {
			return unlessHidden(err)
		}
		running := slices.ContainsFunc(tasks, func(t vcd.Task) bool {
			return t.State == vcd.TaskRunning && t.Operation != "createDefinedEntity"
		})
		if !running {
			return nil
		}
		if err := b.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what the run created of some kinds. Kinds of which it created nothing are not looked for.
func (b *bench) sweep(ctx context.Context, kinds ...kind) error {
	where := place{}
	if b.vdc.ID != "" {
		where.vdcs = []vcd.Ref{b.vdc.Ref}
	}
	if b.gateway.ID != "" {
		where.gateways = []string{b.gateway.ID}
	}
	var errs []error
	for _, k := range kinds {
		if b.made[k] == 0 {
			continue
		}
		found, err := b.find(ctx, k, where)
		errs = append(errs, err)
		for _, x := range found {
			if x.Run == b.run {
				errs = append(errs, b.removeOne(ctx, x))
			}
		}
	}
	return errors.Join(errs...)
}

// find lists the objects of a kind that carry the mark of any run.
func (b *bench) find(ctx context.Context, k kind, in place) ([]Leftover, error) {
	switch k {
	case kindVApp:
		return b.findVApps(ctx, in)
	case kindDisk:
		return b.findDisks(ctx, in)
	case kindEntity:
		return b.findEntities(ctx)
	case kindProfile:
		return b.findProfiles(ctx)
	case kindGroup:
		return b.findGroups(ctx)
	default:
	}
	var all []Leftover
	for _, gateway := range in.gateways {
		found, err := b.findOnGateway(ctx, k, gateway)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// marked returns the objects that carry a mark. Lists may lack descriptions, so each object that has the name is read.
func (b *bench) marked(ctx context.Context, k kind, refs []vcd.Ref, pathOf func(id string) string) ([]Leftover, error) {
	var all []Leftover
	for _, ref := range refs {
		if runName.FindString(ref.Name) == "" {
			continue
		}
		x := Leftover{Kind: string(k), Name: ref.Name, kind: k, id: ref.ID, path: pathOf(ref.ID)}
		run, err := b.owner(ctx, x)
		switch {
		case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden):
			continue
		case err != nil:
			return nil, err
		case run != "":
			x.Run = run
			all = append(all, x)
		case b.isOurs(ref.Name):
			return nil, errUnmarked
		}
	}
	return all, nil
}

// errUnmarked means that an object has the name of one of this run, and not its mark: nothing proves whose it is.
var errUnmarked = errors.New("an object with a name of this run has no mark of it: look at it in VCD")

// isOurs reports whether a name is of this run.
func (b *bench) isOurs(name string) bool {
	return b.run != "" && strings.HasPrefix(name, nameOf(b.run, ""))
}

// owner reads an object and returns the run whose mark and name it has; empty if it has none.
func (b *bench) owner(ctx context.Context, x Leftover) (string, error) {
	isXML := x.kind == kindVApp || x.kind == kindDisk
	got, err := b.session.Raw(ctx, vcd.RawCall{Method: http.MethodGet, Path: x.path, JSON: !isXML, Version: x.version})
	if err != nil {
		return "", err
	}
	if isXML {
		return ownerInXML(got.Body)
	}
	var doc struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Comments    string `json:"comments"`   // of firewall rules
		ExternalID  string `json:"externalId"` // of entities
	}
	if err := json.Unmarshal(got.Body, &doc); err != nil {
		return "", fmt.Errorf("reading %s: %w", x.Name, err)
	}
	return runOf(doc.Name, cmp.Or(doc.Description, doc.Comments, doc.ExternalID)), nil
}

// ownerInXML returns the run of a vApp or a disk. A vApp is of a run only if all of its VMs are.
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

// below returns how the path of an object begins with that of its collection.
func below(collection string) func(string) string {
	return func(id string) string { return collection + "/" + url.PathEscape(id) }
}

func (b *bench) findVApps(ctx context.Context, in place) ([]Leftover, error) {
	records, err := b.session.VApps.List(ctx)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r vcd.VAppRecord) bool {
		return !slices.ContainsFunc(in.vdcs, func(v vcd.Ref) bool { return v.ID == r.VDC.ID })
	})
	return b.marked(ctx, kindVApp, refsOf(records, func(r vcd.VAppRecord) vcd.Ref { return r.Ref }), vAppPath)
}

func (b *bench) findDisks(ctx context.Context, in place) ([]Leftover, error) {
	var refs []vcd.Ref
	for _, v := range in.vdcs {
		disks, err := b.session.Disks.NamedDisks(ctx, vcd.VDC{Ref: v})
		if err != nil {
			return nil, err
		}
		refs = append(refs, refsOf(disks, func(d vcd.NamedDisk) vcd.Ref { return d.Ref })...)
	}
	return b.marked(ctx, kindDisk, refs, diskPath)
}

func diskPath(id string) string { return "/api/disk/" + bare(id) }

func (b *bench) findEntities(ctx context.Context) ([]Leftover, error) {
	entities, err := b.session.Entities.OfType(ctx, entityVendor, entityNSS, "1")
	if err != nil {
		return nil, err
	}
	return b.marked(ctx, kindEntity, refsOf(entities, func(e vcd.Entity) vcd.Ref { return e.Ref }), below(entityPath))
}

func (b *bench) findProfiles(ctx context.Context) ([]Leftover, error) {
	profiles, err := b.session.NAT.PortProfiles(ctx)
	if err != nil {
		return nil, err
	}
	return b.marked(ctx, kindProfile, refsOf(profiles, func(p vcd.PortProfile) vcd.Ref { return p.Ref }), below(profilePath))
}

func (b *bench) findGroups(ctx context.Context) ([]Leftover, error) {
	sets, err := b.session.Firewall.IPSets(ctx, "")
	if err != nil {
		return nil, err
	}
	return b.marked(ctx, kindGroup, refsOf(sets, func(s vcd.IPSet) vcd.Ref { return s.Ref }), below(groupPath))
}

// findOnGateway lists what is on an edge gateway.
func (b *bench) findOnGateway(ctx context.Context, k kind, gateway string) ([]Leftover, error) {
	switch k {
	case kindService:
		all, err := b.session.Balancers.VirtualServices(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return b.marked(ctx, k, refsOf(all, func(s vcd.VirtualService) vcd.Ref { return s.Ref }), below(servicePath))
	case kindPool:
		all, err := b.session.Balancers.Pools(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return b.marked(ctx, k, refsOf(all, func(p vcd.ServerPool) vcd.Ref { return p.Ref }), below(poolPath))
	case kindNAT:
		all, err := b.session.NAT.Rules(ctx, gateway)
		if err != nil {
			return nil, err
		}
		return b.marked(ctx, k, refsOf(all, func(r vcd.NATRule) vcd.Ref { return r.Ref }),
			below(gatewayPath+url.PathEscape(gateway)+"/nat/rules"))
	case kindFirewall:
		return b.findFirewallRules(ctx, gateway)
	default:
		return nil, nil
	}
}

// findFirewallRules reads the rules in the newest version of the API: a rule may have been created in any.
func (b *bench) findFirewallRules(ctx context.Context, gateway string) ([]Leftover, error) {
	if len(b.versions) == 0 {
		return nil, nil
	}
	newest := b.versions[len(b.versions)-1]
	path := firewallRules(gateway, newest)
	got, err := b.session.Raw(ctx, vcd.RawCall{Method: http.MethodGet, Path: path, JSON: true, Version: newest})
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
		if run == "" && b.isOurs(r.Name) {
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

// secondFirewall is the version of the API since which firewall rules have their second form.
const secondFirewall = "38.1"

// firewallRules is where the rules of a gateway are in a version of the API.
func firewallRules(gateway, version string) string {
	path := gatewayPath
	if version >= secondFirewall {
		path = firewallPath
	}
	return path + url.PathEscape(gateway) + "/firewall/rules"
}

// removeOne removes an object after another look at whose it is. What is gone already is no error.
func (b *bench) removeOne(ctx context.Context, x Leftover) error {
	for {
		run, err := b.owner(ctx, x)
		switch {
		case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden):
			return nil
		case err != nil:
			return err
		case run != x.Run:
			return errors.New("it is not marked any more, or something else is in it")
		}
		again, err := b.removeStep(ctx, x)
		if err != nil || !again {
			return ignoreGone(err)
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, vcd.ErrNotFound) {
		return nil
	}
	return err
}

// removeStep takes the next step of removing an object, and reports whether there is another one.
func (b *bench) removeStep(ctx context.Context, x Leftover) (again bool, err error) {
	switch x.kind {
	case kindVApp:
		if err := b.detachDisks(ctx, x); err != nil {
			return false, err
		}
		return true, b.finish(ctx, func() (vcd.Task, error) { return b.session.VApps.DeleteVApp(ctx, x.id) })
	case kindEntity:
		return false, b.removeEntity(ctx, x.id)
	default:
		return false, b.do(ctx, vcd.RawCall{
			Method:  http.MethodDelete,
			Path:    x.path,
			JSON:    x.kind != kindDisk,
			Version: x.version,
		})
	}
}

// errForeignDisk keeps a vApp with an attached disk of another owner from being removed.
var errForeignDisk = errors.New("a disk that is not of this run is attached to a VM: detach it in VCD")

// detachDisks detaches the independent disks of a run from the VMs of its vApp.
func (b *bench) detachDisks(ctx context.Context, vApp Leftover) error {
	details, err := b.session.VApps.Details(ctx, vApp.id)
	if err != nil {
		return err
	}
	for _, vm := range details.Children {
		for _, disk := range vm.IndependentDisks() {
			run, err := b.owner(ctx, Leftover{Name: disk.Name, kind: kindDisk, path: diskPath(disk.ID)})
			if err != nil {
				return fmt.Errorf("reading disk %s: %w", disk.Name, err)
			}
			if run != vApp.Run {
				return errForeignDisk
			}
			detach := func() (vcd.Task, error) { return b.session.VMs.DetachDisk(ctx, vm.ID, disk.ID) }
			if err := b.finish(ctx, detach); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeEntity removes an entity, which VCD allows once it was resolved, whatever came of that.
func (b *bench) removeEntity(ctx context.Context, id string) error {
	entity, err := b.session.Entities.Get(ctx, id)
	if err != nil {
		return err
	}
	if entity.State == vcd.EntityPreCreated {
		if _, err := b.session.Entities.Resolve(ctx, id); err != nil {
			return err
		}
	}
	return b.session.Entities.Delete(ctx, id)
}
