// SPDX-License-Identifier: Apache-2.0

// Package discovery proposes manifests for the objects in VCD that are visible to an identity.
package discovery

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// ZoneOptions are the common settings of proposed zones.
type ZoneOptions struct {
	Namespace   string
	Site, Org   string
	Region      string // value of topology.kubernetes.io/region
	IdentityRef infrav1.IdentityReference
	Networks    []string // default networks of machines; empty: the cluster's network
	Policies    bool     // also propose a zone for each placement policy of a VDC
}

// vdcs lists the VDCs and placement policies for zones.
type vdcs interface {
	ListVDCs(ctx context.Context) ([]vcd.VDC, error)
	ListPlacementPolicies(ctx context.Context, vdc vcd.VDC) ([]vcd.Policy, error)
}

// Zones proposes a VCDFailureDomain and a VCDDeploymentZone for each enabled VDC.
func Zones(ctx context.Context, in vdcs, o ZoneOptions) ([]client.Object, error) {
	all, err := in.ListVDCs(ctx)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	taken := map[string]int{}
	for _, vdc := range all {
		if vdc.Disabled {
			continue
		}
		objects = append(objects, o.zone(taken, vdc.Name, "")...)
		if !o.Policies {
			continue
		}
		policies, err := in.ListPlacementPolicies(ctx, vdc)
		if err != nil {
			return nil, err
		}
		for _, p := range policies {
			objects = append(objects, o.zone(taken, vdc.Name, p.Name)...)
		}
	}
	return objects, nil
}

// zone returns the objects of one zone, with a unique name. taken counts the uses of each name.
func (o ZoneOptions) zone(taken map[string]int, vdc, policy string) []client.Object {
	name := objectName(strings.Trim(vdc+"-"+policy, "-"))
	if taken[name]++; taken[name] > 1 {
		name = fmt.Sprintf("%s-%d", name[:min(len(name), maxName-4)], taken[name])
	}
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: name}
	d := &infrav1.VCDFailureDomain{ObjectMeta: meta}
	d.SetGroupVersionKind(infrav1.GroupVersion.WithKind("VCDFailureDomain"))
	d.Spec = infrav1.VCDFailureDomainSpec{Region: o.Region, Zone: name, OVDC: vdc, PlacementPolicy: policy}
	z := &infrav1.VCDDeploymentZone{ObjectMeta: meta}
	z.SetGroupVersionKind(infrav1.GroupVersion.WithKind("VCDDeploymentZone"))
	z.Spec = infrav1.VCDDeploymentZoneSpec{
		FailureDomain:       name,
		Site:                o.Site,
		Org:                 o.Org,
		IdentityRef:         o.IdentityRef,
		PlacementConstraint: infrav1.PlacementConstraint{Networks: o.Networks},
	}
	return []client.Object{d, z}
}

// maxName is the maximum length of the name of a zone, which is also used as a label value.
const maxName = 63

// objectName converts a name in VCD to a valid name of Kubernetes objects.
func objectName(name string) string {
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	mapped = strings.Trim(mapped[:min(len(mapped), maxName)], "-")
	if mapped == "" {
		return "zone"
	}
	return mapped
}

// YAML returns the manifests of objects, without their empty status.
func YAML(objects []client.Object) ([]byte, error) {
	var out []byte
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", o.GetName(), err)
		}
		out = append(out, "---\n"...)
		out = append(out, data...)
	}
	return out, nil
}
