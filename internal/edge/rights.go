// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// viewRights are the rights to view the kinds of objects that some users may not list.
var viewRights = map[loadbalancer.Kind]string{
	lb.KindSet:         "Organization vDC Gateway: View",
	lb.KindRule:        "Organization vDC Gateway: View NAT",
	lb.KindProfile:     "Organization vDC Gateway: View",
	lb.KindCertificate: "Certificate Library: View",
	lb.KindFirewall:    "Organization vDC Gateway: View Firewall",
	lb.KindAddress:     "Private IP Spaces: View",
}

// rights decide whether a kind that the user may not list counts as empty.
type rights struct {
	mu sync.Mutex
	// seen are the kinds of which a cluster has or had objects, so that a missing right does not prove their absence.
	seen   map[loadbalancer.Kind]bool
	hidden map[loadbalancer.Kind]error // kinds that the user may not list, as of the last attempt
}

func newRights() rights {
	return rights{seen: map[loadbalancer.Kind]bool{}, hidden: map[loadbalancer.Kind]error{}}
}

// tolerate treats a missing right to list a kind as an empty list, unless objects of the kind are known to exist or to
// have existed. That may become known only later, so callers must also check [rights.hides].
func (r *rights) tolerate(kind loadbalancer.Kind, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hidden, kind)
	if !errors.Is(err, vcd.ErrForbidden) {
		return err
	}
	err = fmt.Errorf("the %ss of the cluster are not visible: grant the user the right %q: %w", kind, viewRights[kind],
		err)
	if r.seen[kind] {
		return err
	}
	r.hidden[kind] = err
	return nil
}

// markSeen records that a cluster has an object of a kind.
func (r *rights) markSeen(kind loadbalancer.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[kind] = true
}

// infer records which objects exist according to a virtual service or pool of a cluster.
func (r *rights) infer(m lb.Marker, certificate lb.Ref, group bool) {
	for kind, there := range map[loadbalancer.Kind]bool{
		lb.KindRule:        m.Via == lb.ViaNAT || m.Forwarded,
		lb.KindProfile:     m.Via == lb.ViaNAT || m.Forwarded,
		lb.KindFirewall:    m.Filtered,
		lb.KindSet:         group,
		lb.KindCertificate: lb.Imported(m.Owner, certificate.Name),
	} {
		if there {
			r.markSeen(kind)
		}
	}
}

// hides returns an error if the user may not see objects of kinds that exist. certain means that they are certain to
// exist.
func (r *rights) hides(certain bool, kinds ...loadbalancer.Kind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range kinds {
		if err := r.hidden[kind]; err != nil && (certain || r.seen[kind]) {
			return err
		}
	}
	return nil
}
