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

// defaultPoll is the default interval for polling a task.
const defaultPoll = time.Second

// clockSkew is how far the clock of the site may be behind.
const clockSkew = 5 * time.Minute

// A bench is the shared state of the probes in one run: the site, its objects that they use, and the objects that they
// created.
type bench struct {
	session *vcd.Session
	calls   caller
	run     string
	began   time.Time // start of the run minus clockSkew

	versions []string // API versions that the site offers, oldest first
	release  string   // VCD release; empty if it is not visible

	// Each of these is the zero value if none was found.
	vdc      vcd.VDC
	network  vcd.Network
	template vcd.Template
	gateway  vcd.Gateway
	engines  string // URN of a service engine group of the gateway

	created counts
	vApp    string    // URN of the vApp of the run
	vms     [2]string // URNs of its permanent VMs
	serial  int       // number of the last generated name
	// doubtful is true if a request failed, because it may have started a task nevertheless.
	doubtful bool
}

// newBench finds the objects of the site that probes with these needs use.
func newBench(ctx context.Context, s *vcd.Session, o Options, needs need) (*bench, error) {
	b := &bench{
		session: s,
		calls:   caller{session: s, poll: cmp.Or(o.Poll, defaultPoll)},
		run:     newRun(),
		began:   time.Now().Add(-clockSkew),
		created: counts{},
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

// findVersions reads the API versions that the site offers, and the VCD release if it is visible.
func (b *bench) findVersions(ctx context.Context, _ Options) error {
	versions, err := b.session.Versions(ctx)
	b.versions = versions.API
	b.release = versions.Release
	return err
}

// since returns the offered versions that are not older than version.
func (b *bench) since(version string) []string {
	return slices.DeleteFunc(slices.Clone(b.versions), func(v string) bool { return vcd.CompareVersions(v, version) < 0 })
}

// before returns the newest offered version that is older than version, or the empty string.
func (b *bench) before(version string) string {
	newest := ""
	for _, v := range b.versions {
		if vcd.CompareVersions(v, version) < 0 {
			newest = v
		}
	}
	return newest
}

// choose returns the value of a flag, or the ID of the only candidate, or the empty string if there are no candidates.
// If there are several, the error contains the remedy.
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

// listTemplates returns the templates that are visible to the user, with names of the form catalog/template.
func (b *bench) listTemplates(ctx context.Context) ([]vcd.Ref, error) {
	records, err := b.query(ctx, "vAppTemplate", "pageSize=25&sortAsc=name")
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	var all []vcd.Ref
	for _, r := range records.Records {
		all = append(all, vcd.Ref{
			ID:   "urn:vcloud:vapptemplate:" + uuidOf(r.of("href")),
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

// findEngines finds a service engine group with free capacity. Without one, load balancing cannot be probed.
func (b *bench) findEngines(ctx context.Context, _ Options) error {
	if b.gateway.ID == "" {
		return nil
	}
	settings, err := b.session.Balancers.Settings(ctx, b.gateway.ID)
	if err != nil || settings.Known && !settings.Enabled {
		return ignoreHidden(err)
	}
	groups, err := b.session.Balancers.EngineGroups(ctx, b.gateway.ID)
	for _, g := range groups {
		if g.Max == 0 || g.Deployed+maxConcurrent <= g.Max {
			b.engines = g.ID
			break
		}
	}
	return ignoreHidden(err)
}

// ignoreHidden returns nil if the user may not read something or the site does not support it, otherwise err.
func ignoreHidden(err error) error {
	if errors.Is(err, vcd.ErrForbidden) || errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrInvalid) {
		return nil
	}
	return err
}

// A record is a row in the result of a query.
type record struct {
	Attrs []xml.Attr `xml:",any,attr"`
}

// of returns the value of an attribute of the record, or the empty string.
func (r record) of(name string) string {
	for _, a := range r.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// A page is a page of the result of a query.
type page struct {
	Total    int      `xml:"total,attr"`
	PageSize int      `xml:"pageSize,attr"`
	Records  []record `xml:",any"`
}

// query reads one page of a query. parameters are encoded, as in the URL.
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
	// The elements include links in addition to the records.
	p.Records = slices.DeleteFunc(p.Records, func(r record) bool { return r.of("rel") != "" })
	return p, nil
}

// nextName returns a new name for an object of the run.
func (b *bench) nextName(what string) string {
	b.serial++
	return nameOf(b.run, what+"-"+strconv.Itoa(b.serial))
}
