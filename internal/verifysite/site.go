// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// defaultPoll is the time between two looks at a task.
const defaultPoll = time.Second

// clockSkew is how much the clock of the site may be behind.
const clockSkew = 5 * time.Minute

// A bench is what the probes of one run share: the site, what of it they use, and what they created.
type bench struct {
	session *vcd.Session
	calls   caller
	run     string
	began   time.Time // a moment before, as clocks differ

	versions []string // of the API that the site offers, oldest first
	release  string   // of VCD; empty if it is not shown

	// Each of these is zero if none was found.
	vdc      vcd.VDC
	network  vcd.Network
	template vcd.Template
	gateway  vcd.Gateway
	engines  string // URN of a service engine group of the gateway

	made   counts
	vApp   string    // URN of the vApp of the run
	vms    [2]string // URNs of the VMs that stay in it
	serial int       // of names
	// doubtful is true if a request failed: it may have started something all the same.
	doubtful bool
}

// newBench finds what probes with some needs use.
func newBench(ctx context.Context, s *vcd.Session, o Options, needs need) (*bench, error) {
	b := &bench{
		session: s,
		calls:   caller{session: s, poll: cmp.Or(o.Poll, defaultPoll)},
		run:     newRun(),
		began:   time.Now().Add(-clockSkew),
		made:    counts{},
	}
	for _, look := range []struct {
		needed bool
		find   func(context.Context, Options) error
	}{
		{true, b.findVersions},
		{needs&(machines|onGateway) != 0, b.findVDC},
		{needs&onNetwork != 0, b.findNetwork},
		{needs&machines != 0, b.findTemplate},
		{needs&onGateway != 0, b.findGateway},
		{needs&balancing != 0, b.findEngines},
	} {
		if !look.needed {
			continue
		}
		if err := look.find(ctx, o); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// findVersions reads which versions of the API the site offers, and which release of VCD it is, if that is shown.
func (b *bench) findVersions(ctx context.Context, _ Options) error {
	versions, err := b.session.Versions(ctx)
	b.versions = versions.API
	b.release = versions.Release
	return err
}

// since returns the versions that the site offers, from one on.
func (b *bench) since(version string) []string {
	return slices.DeleteFunc(slices.Clone(b.versions), func(v string) bool { return v < version })
}

// before returns the newest version that the site offers before one; empty if there is none.
func (b *bench) before(version string) string {
	newest := ""
	for _, v := range b.versions {
		if v < version {
			newest = v
		}
	}
	return newest
}

// choose returns what a flag names, or the only candidate. The remedy is in the error if there are several.
func choose(flag, kind, given string, candidates []vcd.Ref) (string, error) {
	switch {
	case given != "":
		return given, nil
	case len(candidates) == 1:
		return candidates[0].ID, nil
	case len(candidates) == 0:
		return "", nil
	}
	names := make([]string, 0, len(candidates))
	for _, c := range candidates {
		names = append(names, c.Name)
	}
	return "", fmt.Errorf("several %ss are visible to the user, set one with --%s: %s", kind, flag, strings.Join(names, ", "))
}

func (b *bench) findVDC(ctx context.Context, o Options) error {
	all, err := b.session.VDCs.List(ctx)
	if err != nil {
		return err
	}
	name, err := choose("vdc", "VDC", o.VDC, all)
	if err != nil || name == "" {
		return err
	}
	b.vdc, err = b.session.VDCs.FindVDC(ctx, name)
	return err
}

func (b *bench) findNetwork(ctx context.Context, o Options) error {
	if b.vdc.ID == "" {
		return nil
	}
	all, err := b.session.Networks.List(ctx, b.vdc)
	if err != nil {
		return err
	}
	name, err := choose("network", "network", o.Network, all)
	if err != nil || name == "" {
		return err
	}
	found, err := b.session.Networks.FindNetwork(ctx, b.vdc, name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found.Subnets, func(s vcd.Subnet) bool { return len(s.StaticPool) > 0 }) {
		b.network = found
	}
	return nil
}

func (b *bench) findTemplate(ctx context.Context, o Options) error {
	catalog, template, found := strings.Cut(o.Template, "/")
	if o.Template != "" && !found {
		return errors.New("--template is catalog/template")
	}
	if o.Template == "" {
		all, err := b.listTemplates(ctx)
		if err != nil {
			return err
		}
		if template, err = choose("template", "template", "", all); err != nil || template == "" {
			return err
		}
	}
	var err error
	b.template, err = b.session.Templates.FindTemplate(ctx, catalog, template)
	return err
}

// listTemplates returns the templates that the user is shown, with their catalogs in their names.
func (b *bench) listTemplates(ctx context.Context) ([]vcd.Ref, error) {
	records, err := b.query(ctx, "vAppTemplate", "pageSize=25&sortAsc=name")
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	var all []vcd.Ref
	for _, r := range records.Records {
		all = append(all, vcd.Ref{
			ID:   "urn:vcloud:vapptemplate:" + bare(r.of("href")),
			Name: r.of("catalogName") + "/" + r.of("name"),
		})
	}
	return all, nil
}

func (b *bench) findGateway(ctx context.Context, o Options) error {
	if o.EdgeGateway != "" {
		ref, err := b.session.Gateways.FindGateway(ctx, o.EdgeGateway)
		if err != nil {
			return err
		}
		b.gateway, err = b.session.Gateways.Gateway(ctx, ref.ID)
		return err
	}
	visible, err := b.session.Gateways.Visible(ctx)
	if errors.Is(err, vcd.ErrForbidden) {
		return nil
	}
	if err != nil {
		return err
	}
	var all []vcd.Ref
	for _, g := range visible {
		if b.vdc.ID == "" || g.Owner.ID == b.vdc.ID || strings.HasPrefix(g.Owner.ID, "urn:vcloud:vdcGroup:") {
			all = append(all, g.Ref)
		}
	}
	id, err := choose("edge-gateway", "edge gateway", "", all)
	if err != nil || id == "" {
		return err
	}
	b.gateway, err = b.session.Gateways.Gateway(ctx, id)
	return err
}

// findEngines finds a service engine group with room. Without one there is no load balancing.
func (b *bench) findEngines(ctx context.Context, _ Options) error {
	if b.gateway.ID == "" {
		return nil
	}
	settings, err := b.session.Balancers.Settings(ctx, b.gateway.ID)
	if err != nil || settings.Known && !settings.Enabled {
		return unlessHidden(err)
	}
	groups, err := b.session.Balancers.EngineGroups(ctx, b.gateway.ID)
	for _, g := range groups {
		if g.Max == 0 || g.Deployed+maxAtATime <= g.Max {
			b.engines = g.ID
			break
		}
	}
	return unlessHidden(err)
}

// unlessHidden drops the errors of a user who may not read something, or of a site that does not have it.
func unlessHidden(err error) error {
	if errors.Is(err, vcd.ErrForbidden) || errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrInvalid) {
		return nil
	}
	return err
}

// A record is a line of a query.
type record struct {
	Attrs []xml.Attr `xml:",any,attr"`
}

// of returns an attribute of the record; empty if it has none of the name.
func (r record) of(name string) string {
	for _, a := range r.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// A page is the answer to a query.
type page struct {
	Total    int      `xml:"total,attr"`
	PageSize int      `xml:"pageSize,attr"`
	Records  []record `xml:",any"`
}

// query asks for one page of a query. Parameters are as they stand in the address.
func (b *bench) query(ctx context.Context, kind, parameters string) (page, error) {
	got, err := b.session.Raw(ctx, vcd.RawCall{
		Method: http.MethodGet,
		Path:   "/api/query",
		Query:  "type=" + kind + "&format=records&" + parameters,
	})
	if err != nil {
		return page{}, err
	}
	var p page
	if err := xml.Unmarshal(got.Body, &p); err != nil {
		return page{}, fmt.Errorf("reading a query: %w", err)
	}
	// Links are elements beside the records.
	p.Records = slices.DeleteFunc(p.Records, func(r record) bool { return r.of("rel") != "" })
	return p, nil
}

// nextName returns another name for an object of the run.
func (b *bench) nextName(what string) string {
	b.serial++
	return nameOf(b.run, what+"-"+strconv.Itoa(b.serial))
}
