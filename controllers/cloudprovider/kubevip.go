// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkServiceAddresses checks the addresses that kube-vip announces for Services before they are added to the
// configuration of the cloud controller manager. VCD must not assign them to VMs, and no other cluster may use them.
func (s *scope) checkServiceAddresses(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.LoadBalancer.KubeVIP == nil {
		return phases.Done, nil
	}
	opened, out, err := s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, c)
	if err != nil || out != phases.Done {
		return out, err
	}
	vdc := vcd.VDC{Ref: vcd.Ref{ID: c.Status.OVDC.ID, Name: c.Status.OVDC.Name}}
	network, err := opened.FindNetwork(ctx, vdc, c.Status.OVDCNetwork.ID)
	if err != nil {
		return lookupProblem(err, checks.Network.Reason, checks.Network.Remedy("spec.ovdcNetwork of the VCDCluster"))
	}
	if found := checks.ServiceAddresses(c, network); found != nil {
		return problems.OfFinding(found), nil
	}
	announced, err := s.announced()
	if err != nil || slices.Equal(announced, checks.ServiceRanges(c)) {
		return phases.Done, err
	}
	return s.checkOtherClusters(ctx, network)
}

// announced returns the addresses in the current configuration of the cloud controller manager. They were checked
// earlier, and no newer cluster takes them from this one.
func (s *scope) announced() ([]vcd.AddressRange, error) {
	if s.set.Secret == nil {
		return nil, nil
	}
	objects, err := addons.Parse(s.set.Secret.Data[resourceset.ManifestsKey])
	if err != nil {
		return nil, err
	}
	var config vcdconfig.Config
	for _, u := range objects {
		if u.GetKind() != "ConfigMap" || u.GetName() != addons.ConfigMapName {
			continue
		}
		text, _, err := unstructured.NestedString(u.Object, "data", addons.ConfigKey)
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s: %w", u.GetName(), err)
		}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return nil, fmt.Errorf("reading the configuration in ConfigMap %s: %w", u.GetName(), err)
		}
	}
	var all []vcd.AddressRange
	for _, r := range config.LoadBalancer.KubeVIP.AddressRanges {
		all = append(all, vcd.AddressRange{From: r.StartIP, To: r.EndIP})
	}
	return all, nil
}

// checkOtherClusters reports a cluster in the same network that uses one of the addresses.
func (s *scope) checkOtherClusters(ctx context.Context, network vcd.Network) (phases.Result, error) {
	list := &infrav1.VCDClusterList{}
	if err := s.reconciler.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == s.vcdCluster.UID || !virtualip.Shares(s.vcdCluster, other, network.ID) {
			continue
		}
		if found := checks.ServiceAddressesTaken(s.vcdCluster, other, capicluster.NameFor(s.vcdCluster, other)); found != nil {
			return problems.OfFinding(found), nil
		}
	}
	return phases.Done, nil
}

// kubeVIP returns the objects that announce addresses of Services in the workload cluster; none if kube-vip is not
// used.
func kubeVIP(spec *infrav1.VCDClusterSpec) ([]unstructured.Unstructured, error) {
	of := spec.LoadBalancer.KubeVIP
	if of == nil {
		return nil, nil
	}
	config := kubevip.ServicesConfig{
		Class:        of.Class,
		Interface:    of.Interface,
		Image:        of.Image,
		ControlPlane: spec.LoadBalancer.Members == infrav1.LoadBalancerAllNodes,
	}
	if endpoint := spec.ControlPlaneLoadBalancer.KubeVIP; endpoint != nil {
		config.Image = cmp.Or(config.Image, endpoint.Image)
	}
	objects, err := kubevip.Services(config)
	if err != nil {
		return nil, fmt.Errorf("rendering kube-vip: %w", err)
	}
	return objects, nil
}

// announces reports whether the pods of kube-vip are available and up to date, if objects contain its DaemonSet.
func announces(objects []*unstructured.Unstructured) (phases.Result, error) {
	for _, u := range objects {
		if u.GetKind() != "DaemonSet" {
			continue
		}
		set := &appsv1.DaemonSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
			return phases.Done, fmt.Errorf("reading DaemonSet %s: %w", u.GetName(), err)
		}
		status := set.Status
		if status.ObservedGeneration >= set.Generation &&
			status.UpdatedNumberScheduled >= status.DesiredNumberScheduled &&
			(status.NumberAvailable > 0 || status.DesiredNumberScheduled == 0) {
			continue
		}
		return phases.Wait(addon.StartPoll, infrav1.KubeVIPUnavailableReason, "Waiting for pods of DaemonSet %s/%s to be available: %d of %d updated, %d available", set.Namespace, set.Name, status.UpdatedNumberScheduled,
			status.DesiredNumberScheduled, status.NumberAvailable), nil
	}
	return phases.Done, nil
}
