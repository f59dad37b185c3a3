// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// inputs holds the objects of a reconcile. All except the VCDMachine are nil if they no longer exist.
type inputs struct {
	vcdMachine *infrav1.VCDMachine
	machine    *clusterv1.Machine
	cluster    *clusterv1.Cluster
	vcdCluster *infrav1.VCDCluster
}

// findInputs returns the objects that belong to m. It reports false if m must not be reconciled, because it has no
// owner yet. A VCDMachine that is being deleted needs no owner.
func findInputs(ctx context.Context, c client.Client, m *infrav1.VCDMachine) (in inputs, ok bool, err error) {
	in.vcdMachine = m
	if in.machine, err = util.GetOwnerMachine(ctx, c, m.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return in, false, fmt.Errorf("getting the Machine of VCDMachine %s: %w", klog.KObj(m), err)
	}
	in.cluster, err = util.GetClusterFromMetadata(ctx, c, m.ObjectMeta)
	if client.IgnoreNotFound(err) != nil && !errors.Is(err, util.ErrNoCluster) {
		return in, false, fmt.Errorf("getting the Cluster of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if m.DeletionTimestamp.IsZero() && (in.machine == nil || in.cluster == nil) {
		return in, false, nil // The owner reference triggers the next reconcile.
	}
	in.vcdCluster, err = vcdClusterOf(ctx, c, m, in.cluster)
	return in, err == nil, err
}

// vcdClusterOf returns the VCDCluster of m; nil if it does not exist.
func vcdClusterOf(ctx context.Context, c client.Client, m *infrav1.VCDMachine, cluster *clusterv1.Cluster) (*infrav1.VCDCluster, error) {
	if cluster != nil && cluster.Spec.InfrastructureRef.IsDefined() {
		found := &infrav1.VCDCluster{}
		key := client.ObjectKey{Namespace: m.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
		err := c.Get(ctx, key, found)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting VCDCluster %s: %w", key, err)
		}
		if err == nil {
			return found, nil
		}
	}
	name := m.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil, nil
	}
	list := &infrav1.VCDClusterList{}
	if err := c.List(ctx, list, client.InNamespace(m.Namespace), index.OfCluster(name)); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if len(list.Items) != 1 {
		return nil, nil // None, or ambiguous.
	}
	return &list.Items[0], nil
}

// key identifies the machine in the session and in queues.
func (i *inputs) key() string { return string(i.vcdMachine.UID) }

// marker returns the ownership marker of the machine's objects in VCD. It survives a move to another management
// cluster.
func (i *inputs) marker() vcd.Marker {
	return vcd.Marker{
		Cluster: i.vcdCluster.Spec.InfraID,
		Machine: i.vcdMachine.Spec.RecordedState.InstanceID,
	}
}

// hasMarker reports whether a description has the ownership marker of the machine. A machine without an instance ID has no
// marker: the marker of its cluster alone is that of objects that machines share.
func (i *inputs) hasMarker(description string) bool {
	marker := i.marker()
	return marker.Machine != "" && marker.IsOf(description)
}

// vmID returns the URN of the recorded VM; empty if no VM is recorded.
func (i *inputs) vmID() string {
	id, err := providerid.Parse(i.vcdMachine.Spec.ProviderID)
	if err != nil {
		return ""
	}
	return id
}

func (i *inputs) provisioned() bool {
	return ptr.Deref(i.vcdMachine.Status.Initialization.Provisioned, false)
}

// hasRun reports whether the VM ran once, after which it is not created again. Unlike the status, this fact survives a
// move to another management cluster.
func (i *inputs) hasRun() bool {
	return i.provisioned() || i.vcdMachine.Spec.RecordedState.PoweredOnAt != nil
}

// ownerIsDeleting reports whether the Machine or its Cluster is being deleted. Cluster API first drains the node, and deletes the
// VCDMachine afterwards.
func (i *inputs) ownerIsDeleting() bool {
	return i.machine != nil && !i.machine.DeletionTimestamp.IsZero() ||
		i.cluster != nil && !i.cluster.DeletionTimestamp.IsZero()
}

// creationRequested returns when the creation of the VM was last requested; zero if that is unknown.
func (i *inputs) creationRequested() time.Time {
	if at := i.vcdMachine.Spec.RecordedState.CreationRequestedAt; at != nil {
		return at.Time
	}
	return time.Time{}
}

// mayHaveVM reports whether the creation of a VM was requested, so that the VM may exist.
func (i *inputs) mayHaveVM() bool {
	return i.vcdMachine.Spec.ProviderID != "" || i.vcdMachine.Spec.RecordedState.CreationRequestedAt != nil
}

// zoneName returns the name of the machine's VCDDeploymentZone; empty if it has none. The recorded zone never changes.
// While no zone is recorded, the failure domain of the Machine counts, unless the creation of a VM without a zone was
// requested.
func (i *inputs) zoneName() string {
	zone := i.vcdMachine.Spec.RecordedState.DeploymentZone
	if zone != "" || i.machine == nil || i.mayHaveVM() {
		return zone
	}
	return i.machine.Spec.FailureDomain
}

func (i *inputs) clusterName() string { return capicluster.Name(i.vcdCluster, i.cluster) }

// vAppName returns the name of the vApp in which the machine's VM is created.
func (i *inputs) vAppName() string {
	if vapp.PerMachine(i.vcdCluster) {
		return i.vcdMachine.Spec.RecordedState.VMName
	}
	return vapp.Numbered(vapp.NameIn(i.vcdCluster, i.clusterName(), i.zoneName()), i.vAppNumber())
}

// vAppNumber returns the number of the machine's vApp among the vApps of the cluster, from 1.
func (i *inputs) vAppNumber() int {
	return max(1, int(i.vcdMachine.Spec.RecordedState.VAppNumber))
}

// baseline returns the state of the VM at its creation. It reports false if that is not recorded.
func (i *inputs) baseline() (drift.Baseline, bool) {
	recorded := i.vcdMachine.Spec.RecordedState.VM
	if recorded == nil {
		return drift.Baseline{}, false
	}
	return drift.Baseline(*recorded.DeepCopy()), true
}

// createdInVApp returns the URN of the vApp in which the machine's VM was created; empty if it is unknown.
func (i *inputs) createdInVApp() string {
	if baseline, ok := i.baseline(); ok && baseline.VAppID != "" {
		return baseline.VAppID
	}
	if vApp := i.vcdMachine.Status.VApp; vApp != nil {
		return vApp.ID
	}
	return ""
}

// batchKey identifies the queue of the machine's vApp. Clusters never share a queue, because their identities differ.
// vApps with the same name may exist in several VDCs.
func (i *inputs) batchKey() string {
	if i.vcdCluster == nil {
		return ""
	}
	return strings.Join([]string{
		string(i.vcdCluster.UID),
		i.vcdCluster.Spec.InfraID,
		i.vcdMachine.Spec.RecordedState.OVDCID,
		i.vAppName(),
	}, "/")
}
