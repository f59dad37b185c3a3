// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
)

// tkgAnnotation of a Cluster contains the version of VMware's Kubernetes distribution. The templates of CAPVCD set it.
const tkgAnnotation = "TKGVERSION"

// objects are the Kubernetes objects that the entity summarizes.
type objects struct {
	vcdCluster   *infrav1.VCDCluster
	cluster      *clusterv1.Cluster // nil: deleted
	machines     []clusterv1.Machine
	vcdMachines  map[string]*infrav1.VCDMachine // by name
	deployments  []clusterv1.MachineDeployment
	controlPlane string // its version; empty: unknown
	kubeconfig   *string
}

// facts are the data that the entity shows.
type facts struct{ rde.Cluster }

// digest returns a digest of the facts and of the entity's ID.
func (f facts) digest(id string) string {
	raw, err := json.Marshal(f.Cluster)
	if err != nil {
		return "" // differs from all written digests
	}
	sum := sha256.Sum256(append(raw, id...))
	return hex.EncodeToString(sum[:])
}

// observe reads the objects that the entity summarizes. Kinds that no reconciler watches are read live, so that this
// reconciler does not add an informer. Their changes become visible with the next change of another kind.
func (s *scope) observe(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	o := objects{vcdCluster: c, cluster: s.cluster, vcdMachines: map[string]*infrav1.VCDMachine{}}
	in := client.InNamespace(c.Namespace)
	name := capicluster.Name(c, s.cluster)
	machines := &clusterv1.MachineList{}
	vcdMachines := &infrav1.VCDMachineList{}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := s.reconciler.Client.List(ctx, machines, in, index.OfCluster(name)); err != nil {
		return phases.Done, fmt.Errorf("listing Machines: %w", err)
	}
	if err := s.reconciler.Client.List(ctx, vcdMachines, in, index.OfCluster(name)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	if err := s.reconciler.Live.List(ctx, deployments, in, capicluster.Labels(name)); err != nil {
		return phases.Done, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	o.machines = machines.Items
	o.deployments = deployments.Items
	for i := range vcdMachines.Items {
		o.vcdMachines[vcdMachines.Items[i].Name] = &vcdMachines.Items[i]
	}
	o.controlPlane = s.controlPlaneVersion(ctx)
	var err error
	if o.kubeconfig, err = s.kubeconfig(ctx); err != nil {
		return phases.Done, err
	}
	s.facts = facts{o.view(s.reconciler.Version)}
	return phases.Done, nil
}

// controlPlaneVersion returns the desired version of the control plane; empty if its kind has none or cannot be read.
func (s *scope) controlPlaneVersion(ctx context.Context) string {
	if s.cluster == nil || !s.cluster.Spec.ControlPlaneRef.IsDefined() {
		return ""
	}
	ref := s.cluster.Spec.ControlPlaneRef
	mapping, err := s.reconciler.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Skipped reading the control plane", "kind", ref.Kind, "reason", err.Error())
		return ""
	}
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := s.reconciler.Live.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}, of); err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Skipped reading the control plane", "kind", ref.Kind, "reason", err.Error())
		return ""
	}
	version, _, _ := unstructured.NestedString(of.Object, "spec", "version")
	return version
}

// kubeconfig returns the kubeconfig for the entity; nil leaves the current one unchanged.
func (s *scope) kubeconfig(ctx context.Context) (*string, error) {
	include := s.vcdCluster.Spec.RDE.IncludeKubeconfig
	switch {
	case include == nil || s.cluster == nil:
		return nil, nil
	case !*include:
		return ptr.To(""), nil
	}
	raw, err := kubeconfig.FromSecret(ctx, s.reconciler.Live, client.ObjectKeyFromObject(s.cluster))
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the kubeconfig of Cluster %s: %w", s.cluster.Name, err)
	}
	if err != nil {
		return nil, nil //nolint:nilerr // The Secret is created with the control plane.
	}
	return ptr.To(string(raw)), nil
}

// view returns the summary of the objects.
func (o objects) view(version string) rde.Cluster {
	c := o.vcdCluster
	out := rde.Cluster{
		UID:        c.Spec.InfraID,
		Name:       c.Name,
		Site:       c.Spec.Site,
		Org:        rde.Named{Name: c.Spec.Org},
		VDCs:       o.vdcs(),
		Version:    version,
		Host:       c.Spec.ControlPlaneEndpoint.Host,
		Port:       c.Spec.ControlPlaneEndpoint.Port,
		ParentUID:  c.Spec.RDE.ParentUID,
		Management: c.Spec.RDE.UseAsManagementCluster,
		Kubeconfig: o.kubeconfig,
		Pools:      o.pools(),
		VApps:      o.vApps(),
		Errors:     o.errors(),
		Events:     o.events(),
	}
	out.Release = rde.Release{Kubernetes: o.release()}
	out.Upgraded = o.upgraded(out.Release.Kubernetes)
	if !c.DeletionTimestamp.IsZero() {
		out.Phase = string(clusterv1.ClusterPhaseDeleting)
	}
	if o.cluster == nil {
		return out
	}
	out.Phase = cmp.Or(o.cluster.Status.Phase, out.Phase)
	out.Ready = capicluster.Initialized(o.cluster)
	out.Pods = o.cluster.Spec.ClusterNetwork.Pods.CIDRBlocks
	out.Services = o.cluster.Spec.ClusterNetwork.Services.CIDRBlocks
	out.Release.TKG = o.cluster.Annotations[tkgAnnotation]
	return out
}

func (o objects) vdcs() []rde.VDC {
	c := o.vcdCluster
	if c.Status.OVDC == nil {
		return nil
	}
	vdc := rde.VDC{Named: rde.Named{Name: c.Status.OVDC.Name, ID: c.Status.OVDC.ID}}
	if c.Status.OVDCNetwork != nil {
		vdc.Network = c.Status.OVDCNetwork.Name
	}
	return []rde.VDC{vdc}
}

// release returns the desired version of the control plane or, if it is unknown, that of the newest control-plane
// machine.
func (o objects) release() string {
	if o.controlPlane != "" {
		return o.controlPlane
	}
	var newest *clusterv1.Machine
	for i := range o.machines {
		m := &o.machines[i]
		if isControlPlane(m) && (newest == nil || newest.CreationTimestamp.Before(&m.CreationTimestamp)) {
			newest = m
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Spec.Version
}

func (o objects) upgraded(version string) bool {
	return len(o.machines) > 0 && !slices.ContainsFunc(o.machines,
		func(m clusterv1.Machine) bool { return m.Spec.Version != version })
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// pools returns the pools of the control plane and of the MachineDeployments.
func (o objects) pools() []rde.NodePool {
	var pools []rde.NodePool
	if o.cluster != nil && o.cluster.Spec.ControlPlaneRef.IsDefined() {
		pool := o.pool(o.cluster.Spec.ControlPlaneRef.Name, isControlPlane)
		if status := o.cluster.Status.ControlPlane; status != nil {
			pool.Desired = ptr.Deref(status.DesiredReplicas, pool.Desired)
			pool.Available = ptr.Deref(status.AvailableReplicas, 0)
		}
		pools = append(pools, pool)
	}
	for i := range o.deployments {
		d := &o.deployments[i]
		pool := o.pool(d.Name, func(m *clusterv1.Machine) bool {
			return m.Labels[clusterv1.MachineDeploymentNameLabel] == d.Name
		})
		pool.Desired = ptr.Deref(d.Spec.Replicas, pool.Desired)
		pool.Available = ptr.Deref(d.Status.AvailableReplicas, 0)
		pools = append(pools, pool)
	}
	return pools
}

// pool returns the pool of the machines that has selects. Its settings are those of the newest machine.
func (o objects) pool(name string, has func(*clusterv1.Machine) bool) rde.NodePool {
	pool := rde.NodePool{Name: name, Nodes: map[string]string{}}
	var newest *infrav1.VCDMachine
	for i := range o.machines {
		m := &o.machines[i]
		if !has(m) {
			continue
		}
		pool.Desired++
		pool.Nodes[m.Name] = m.Status.Phase
		if v := o.vcdMachines[m.Spec.InfrastructureRef.Name]; v != nil &&
			(newest == nil || newest.CreationTimestamp.Before(&v.CreationTimestamp)) {
			newest = v
		}
	}
	if newest != nil {
		pool.SizingPolicy = newest.Spec.SizingPolicy
		pool.PlacementPolicy = newest.Spec.PlacementPolicy
		pool.StorageProfile = newest.Spec.StorageProfile
		pool.DiskMiB = sizes.Disk(&newest.Spec)
	}
	return pool
}

func (o objects) vApps() []rde.Resource {
	byID := map[string]rde.Resource{}
	for _, m := range o.vcdMachines {
		if v := m.Status.VApp; v != nil && v.ID != "" {
			byID[v.ID] = rde.Resource{Type: rde.VAppResource, ID: v.ID, Name: v.Name}
		}
	}
	var out []rde.Resource
	for _, r := range byID {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b rde.Resource) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
