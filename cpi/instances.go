// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	cloudapi "k8s.io/cloud-provider/api"
	"k8s.io/utils/clock"
)

const (
	// defaultMaxAge is the default of [InstanceOptions.MaxAge].
	defaultMaxAge = 30 * time.Second
	// freshAge is the maximum age of a snapshot for a Node whose machine it lacks.
	freshAge = 10 * time.Second
	// detailAge is how long the full data of a machine is cached. Jitter of a quarter spreads the reads. The data
	// expires because a snapshot may show only one address, and another one may appear later.
	detailAge = 10 * time.Minute
)

// Instances implement [cloudprovider.InstancesV2], the machines of Nodes.
type Instances struct {
	opts    InstanceOptions
	breaker *circuitBreaker

	mu      sync.Mutex
	details map[string]detail // by provider ID
	noticed map[string]string // emitted notices, by provider ID
}

var _ cloudprovider.InstancesV2 = (*Instances)(nil)

// NewInstances returns the implementation for Nodes.
func NewInstances(opts InstanceOptions) *Instances {
	if opts.MaxAge == 0 {
		opts.MaxAge = defaultMaxAge
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	opts.Machines = &failureCache{
		machines: opts.Machines,
		clock:    opts.Clock,
	}
	return &Instances{
		opts:    opts,
		breaker: newCircuitBreaker(opts),
		details: map[string]detail{},
		noticed: map[string]string{},
	}
}

// InstanceExists reports whether the machine of a Node exists. It returns false only if the absence is proved. It
// returns true for Nodes of other clouds, and an error in all other cases.
func (i *Instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	if !i.ours(node) {
		return true, nil // It belongs to another cloud, or has no provider ID to check.
	}
	machine, all, err := i.find(ctx, node)
	switch {
	case err != nil:
		return false, err
	case machine != nil:
		i.breaker.seen(machine.ProviderID)
		return true, nil
	}
	return i.breaker.exists(ctx, node, all)
}

// InstanceShutdown reports whether the machine of a Node is powered off.
func (i *Instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	if i.foreign(node) {
		return false, nil
	}
	machine, _, err := i.find(ctx, node)
	if err != nil || machine == nil {
		return false, err
	}
	return machine.Power == PowerOff, nil
}

// InstanceMetadata returns the metadata of a Node. It returns nil without an error if the Node belongs to another
// cloud.
func (i *Instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	if i.foreign(node) {
		return nil, nil // nil metadata: the Node belongs to another provider.
	}
	machine, _, err := i.find(ctx, node)
	if err != nil {
		return nil, err
	}
	if machine == nil {
		return nil, i.invisibleError(node)
	}
	i.notice(node, *machine)
	if machine.Unready != nil && uninitialized(node) {
		return nil, fmt.Errorf("machine %s of node %s: %w", machine.Name, node.Name, machine.Unready)
	}
	given := kubeletAddresses(node)
	detailed, err := i.detailed(ctx, *machine, given)
	if err != nil {
		return nil, err
	}
	addresses := i.opts.Addresses.addressesOf(detailed, given)
	if len(addresses) == 0 && uninitialized(node) {
		return nil, fmt.Errorf("machine %s has no address yet for node %s", machine.Name, node.Name)
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:       machine.ProviderID,
		NodeAddresses:    addresses,
		InstanceType:     machine.Type,
		Zone:             machine.Zone,
		Region:           machine.Region,
		AdditionalLabels: machine.Labels,
	}, nil
}

// invisibleError returns the error for a Node without a machine.
func (i *Instances) invisibleError(node *corev1.Node) error {
	if node.Spec.ProviderID == "" {
		return fmt.Errorf("node %s has no provider ID, and no machine of the cluster has its name", node.Name)
	}
	if uninitialized(node) {
		i.opts.event(node, reasonNotVisible, "%s is not visible in the cloud: if it exists, grant the user of the cloud controller manager access to it. The node stays uninitialized until then", node.Spec.ProviderID)
	}
	return fmt.Errorf("machine %s of node %s is not visible", node.Spec.ProviderID, node.Name)
}

// ours reports whether a Node has a provider ID of this cloud.
func (i *Instances) ours(node *corev1.Node) bool {
	return strings.HasPrefix(i.opts.canonical(node.Spec.ProviderID), i.opts.Name+"://")
}

// foreign reports whether a Node has a provider ID of another cloud.
func (i *Instances) foreign(node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && !i.ours(node)
}

// find returns the machine of a Node, or nil, and all machines. If a snapshot lacks the machine, it takes another one,
// unless the snapshot is new.
func (i *Instances) find(ctx context.Context, node *corev1.Node) (*Machine, []Machine, error) {
	for _, age := range []time.Duration{i.opts.MaxAge, min(freshAge, i.opts.MaxAge)} {
		machine, all, err := i.findAged(ctx, node, age)
		if machine != nil || err != nil || age <= freshAge {
			return machine, all, err
		}
	}
	return nil, nil, nil
}

// findAged finds the machine of a Node in a snapshot of at most the given age.
func (i *Instances) findAged(ctx context.Context, node *corev1.Node, age time.Duration) (*Machine, []Machine, error) {
	all, err := i.opts.Machines.Snapshot(ctx, age)
	if err == nil {
		i.forget(all)
		machine, err := i.match(ctx, node, all)
		return machine, all, err
	}
	if _, partial := errors.AsType[*IncompleteError](err); partial {
		if machine, _ := i.match(ctx, node, all); machine != nil {
			return machine, all, nil
		}
	}
	return nil, nil, fmt.Errorf("reading the machines of the cluster: %w", err)
}

// kubeletAddresses returns the addresses that the kubelet of a Node was started with.
func kubeletAddresses(node *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for s := range strings.SplitSeq(node.Annotations[cloudapi.AnnotationAlphaProvidedIPAddr], ",") {
		if a, err := netip.ParseAddr(strings.TrimSpace(s)); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func uninitialized(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == cloudapi.TaintExternalCloudProvider })
}
