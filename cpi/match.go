// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// match finds the machine of a Node by its provider ID. A Node without one is matched by the UUID that its kernel
// reports, or by its name.
func (i *Instances) match(ctx context.Context, node *corev1.Node, all []Machine) (*Machine, error) {
	if node.Spec.ProviderID != "" {
		return i.matchID(node, all), nil
	}
	return i.matchName(ctx, node, all)
}

func (i *Instances) matchID(node *corev1.Node, all []Machine) *Machine {
	id := i.opts.canonical(node.Spec.ProviderID)
	at := slices.IndexFunc(all, func(m Machine) bool { return i.opts.canonical(m.ProviderID) == id })
	if at < 0 {
		uuid := strings.TrimPrefix(id, i.opts.Name+"://")
		at = slices.IndexFunc(all, func(m Machine) bool { return m.hasUUID(uuid) })
	}
	if at < 0 {
		return nil
	}
	m := all[at]
	m.ProviderID = node.Spec.ProviderID // in the form that the Node has, because it is immutable
	return &m
}

// matchName finds the machine of a Node without a provider ID, among those that certainly belong to the cluster. A
// machine with the UUID that the Node's kernel reports takes precedence over machines that only match by name.
func (i *Instances) matchName(ctx context.Context, node *corev1.Node, all []Machine) (*Machine, error) {
	var found []Machine
	for _, m := range candidates(node, all) {
		if m.Doubtful {
			known, err := i.read(ctx, m, nil)
			if err != nil {
				return nil, err
			}
			if known.Doubtful {
				continue
			}
		}
		found = append(found, m)
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	i.opts.event(node, reasonAmbiguous, "%d machines match the Node, among them %s and %s: give the machine of each Node a unique name or UUID", len(found), found[0].ProviderID, found[1].ProviderID)
	return nil, fmt.Errorf("node %s has no provider ID, and %d machines of the cluster have its name", node.Name,
		len(found))
}

// candidates returns the machines that match a Node best.
func candidates(node *corev1.Node, all []Machine) []Machine {
	uuid := node.Status.NodeInfo.SystemUUID
	fit := []func(Machine) bool{
		func(m Machine) bool { return m.hasUUID(uuid) && m.isNamed(node.Name) },
		func(m Machine) bool { return m.hasUUID(uuid) },
		func(m Machine) bool { return m.mayHaveUUID(uuid) && m.Name == node.Name },
		func(m Machine) bool { return m.mayHaveUUID(uuid) && m.isNamed(node.Name) },
	}
	for _, fits := range fit {
		found := slices.DeleteFunc(slices.Clone(all), func(m Machine) bool { return !fits(m) })
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func (m Machine) hasUUID(uuid string) bool {
	return slices.ContainsFunc(m.SystemUUIDs, func(own string) bool { return strings.EqualFold(own, uuid) })
}

// mayHaveUUID reports whether the machine has a UUID, or no known UUID.
func (m Machine) mayHaveUUID(uuid string) bool {
	return uuid == "" || len(m.SystemUUIDs) == 0 || m.hasUUID(uuid)
}

// isNamed reports whether the machine has a name, with or without the domain.
func (m Machine) isNamed(name string) bool {
	short, _, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(m.Hostnames, func(own string) bool {
		ownShort, _, _ := strings.Cut(own, ".")
		return strings.EqualFold(own, name) || strings.EqualFold(own, short) || strings.EqualFold(ownShort, name)
	})
}
