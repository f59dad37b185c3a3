// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A detail is a machine with the data of the last Get.
type detail struct {
	Machine

	read  time.Time
	until time.Time // when it is read again, even if it appears unchanged
}

// detailed returns a machine with all the data that the selection of its addresses needs.
func (i *Instances) detailed(ctx context.Context, m Machine, given []netip.Addr) (Machine, error) {
	if i.opts.Addresses.enough(m, given) {
		return m, nil
	}
	return i.read(ctx, m, given)
}

// read returns a machine with all its data. The result is cached. It is read again if the snapshot shows that the
// machine may have changed, while its addresses or those given to its kubelet are unknown, and at intervals.
func (i *Instances) read(ctx context.Context, m Machine, given []netip.Addr) (Machine, error) {
	now := i.opts.Clock.Now()
	id := i.opts.canonical(m.ProviderID)
	i.mu.Lock()
	known, ok := i.details[id]
	i.mu.Unlock()
	ok = ok && known.Revision == m.Revision && len(chosen(known.Machine, Selection{})) > 0
	if ok && now.Before(known.until) && (known.has(given) || now.Sub(known.read) < freshAge) {
		return known.Machine, nil
	}
	machine, err := i.opts.Machines.Get(ctx, m.ProviderID)
	switch {
	case err != nil && ok:
		return known.Machine, nil // It appears unchanged.
	case err != nil:
		return Machine{}, fmt.Errorf("reading machine %s: %w", m.Name, err)
	}
	machine.Revision = m.Revision
	i.mu.Lock()
	defer i.mu.Unlock()
	i.details[id] = detail{Machine: machine, read: now, until: now.Add(detailAge*3/4 + rand.N(detailAge/2))} //nolint:gosec // jitter
	return machine, nil
}

// forget drops the cached data of machines that no longer exist.
func (i *Instances) forget(all []Machine) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if max(len(i.details), len(i.noticed)) <= len(all) {
		return
	}
	there := i.opts.ids(all)
	maps.DeleteFunc(i.details, func(id string, _ detail) bool { return !there[id] })
	maps.DeleteFunc(i.noticed, func(id, _ string) bool { return !there[id] })
}

// notice emits an event for each notice about the machine of a Node when the notices change.
func (i *Instances) notice(node *corev1.Node, m Machine) {
	text := fmt.Sprint(m.Notices)
	id := i.opts.canonical(m.ProviderID)
	i.mu.Lock()
	changed := len(m.Notices) > 0 && i.noticed[id] != text
	if i.noticed[id] = text; len(m.Notices) == 0 {
		delete(i.noticed, id)
	}
	i.mu.Unlock()
	for _, n := range m.Notices {
		if changed {
			i.opts.event(node, n.Reason, "%s", n.Message)
		}
	}
}
