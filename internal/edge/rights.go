package edge

import (
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// viewRights are the rights by which a user sees objects of a kind that some do without.
var viewRights = map[lb.Kind]string{
	lb.KindSet:         "Organization vDC Gateway: View",
	lb.KindRule:        "Organization vDC Gateway: View NAT",
	lb.KindProfile:     "Organization vDC Gateway: View",
	lb.KindCertificate: "Certificate Library: View",
	lb.KindFirewall:    "Organization vDC Gateway: View Firewall",
}

// tolerate takes a missing right to look at objects of a kind for their absence, unless something says that there are, or were, some. What
// says so may be seen only later: whoever uses the list asks [gateway.hides], too.
func (g *gateway) tolerate(kind lb.Kind, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.hidden, kind)
	if !errors.Is(err, vcd.ErrForbidden) {
		return err
	}
	err = fmt.Errorf("the %ss of the cluster may not be seen: grant the user the right %q: %w", kind, viewRights[kind], err)
	if g.seen[kind] {
		return err
	}
	g.hidden[kind] = err
	return nil
}

// see notes that there is something of a cluster's of this kind.
func (g *gateway) see(kind lb.Kind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[kind] = true
}

// infer notes what a virtual service, or pool, of a cluster says to be there besides.
func (g *gateway) infer(m lb.Marker, certificate vcd.Ref, group bool) {
	for kind, there := range map[lb.Kind]bool{
		lb.KindRule: m.Via == lb.ViaNAT, lb.KindProfile: m.Via == lb.ViaNAT, lb.KindFirewall: m.Guarded, lb.KindSet: group,
		lb.KindCertificate: lb.Imported(m.Owner, certificate.Name),
	} {
		if there {
			g.see(kind)
		}
	}
}

// hides returns why the user does not see objects of kinds of which there are some, or may well be some; nil if it sees them, or there are none.
func (g *gateway) hides(certain bool, kinds ...lb.Kind) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, kind := range kinds {
		if err := g.hidden[kind]; err != nil && (certain || g.seen[kind]) {
			return err
		}
	}
	return nil
}

// hidden makes sure that nothing is overlooked for want of a right.
func (l *look) hidden() error {
	if err := l.gateway.hides(false, lb.KindSet); err != nil {
		return err
	}
	for facts, kinds := range map[lb.Facts][]lb.Kind{
		lb.Forwardings: {lb.KindRule, lb.KindProfile}, lb.Certificates: {lb.KindCertificate}, lb.Firewall: {lb.KindFirewall},
	} {
		if !l.query.Facts.Has(facts) {
			continue
		}
		if err := l.gateway.hides(facts == lb.Forwardings && l.query.Translated, kinds...); err != nil {
			return err
		}
	}
	return nil
}
