// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// InstanceOptions configure [Instances].
type InstanceOptions struct {
	Name      string              // of the provider, and the scheme of its provider IDs
	Canonical func(string) string // [Backend.Canonical]
	Machines  Machines
	Addresses AddressPolicy
	MaxAge    time.Duration // of a snapshot; 0 means 30 s
	Nodes     corelisters.NodeLister
	Recorder  record.EventRecorder
	Clock     clock.PassiveClock // nil: real time
}

// canonical returns a provider ID in a form that can be compared.
func canonical(providerID string) string { return strings.ToLower(strings.TrimSpace(providerID)) }

// canonical returns a provider ID in any form of the cloud in a form that can be compared.
func (o InstanceOptions) canonical(providerID string) string {
	id := canonical(providerID)
	if o.Canonical != nil {
		return o.Canonical(id)
	}
	return id
}

// ids returns the provider IDs of machines, in all forms.
func (o InstanceOptions) ids(all []Machine) map[string]bool {
	ids := map[string]bool{}
	for _, m := range all {
		ids[o.canonical(m.ProviderID)] = true
		for _, uuid := range m.SystemUUIDs {
			ids[canonical(o.Name+"://"+uuid)] = true
		}
	}
	return ids
}

// knownIDs returns the provider IDs of this cloud that the Nodes have.
func (o InstanceOptions) knownIDs() ([]string, error) {
	all, err := o.Nodes.List(labels.Everything())
	if err != nil {
		return nil, errors.New("listing nodes")
	}
	var ids []string
	for _, node := range all {
		if id := o.canonical(node.Spec.ProviderID); strings.HasPrefix(id, o.Name+"://") {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// event emits a warning on a Node.
func (o InstanceOptions) event(node *corev1.Node, reason, format string, args ...any) {
	if o.Recorder != nil {
		o.Recorder.Eventf(node, corev1.EventTypeWarning, reason, format, args...)
	}
}
