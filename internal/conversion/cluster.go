// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
)

// rdeVersion is the version of the entities that CAPVCD writes.
const rdeVersion = "1.1.0"

// vdcType is the type of VDCs in the resource map of CAPVCD.
const vdcType = "ovdc"

func clusterKind() *kind[*infrav1.VCDCluster, *v1beta3.VCDCluster] {
	return &kind[*infrav1.VCDCluster, *v1beta3.VCDCluster]{
		newHub:  func() *infrav1.VCDCluster { return &infrav1.VCDCluster{} },
		newOld:  func() *v1beta3.VCDCluster { return &v1beta3.VCDCluster{} },
		toHub:   clusterToHub,
		fromHub: clusterFromHub,
		settle: func(hub, former *infrav1.VCDCluster) {
			if former.Spec.InfraID != "" {
				hub.Spec.InfraID = former.Spec.InfraID
				hub.Spec.RDE.Mode = former.Spec.RDE.Mode
			}
			settleClusterSpec(&hub.Spec)
			settleIdentity(&hub.Spec, &former.Spec, hub)
		},
		credentials: &credentials[*infrav1.VCDCluster, *v1beta3.VCDCluster]{
			ofHub: func(hub *infrav1.VCDCluster) **infrav1.CAPVCDCredentials { return &hub.Spec.CAPVCDCredentials },
			ofOld: func(old *v1beta3.VCDCluster) *v1beta3.UserCredentialsContext {
				return &old.Spec.UserCredentialsContext
			},
		},
	}
}

func clusterToHub(old *v1beta3.VCDCluster, hub *infrav1.VCDCluster) {
	clusterSpecToHub(&old.Spec, old, &hub.Spec)
	hub.Spec.InfraID = infraIDOf(old)
	hub.Spec.ControlPlaneEndpoint = endpointToHub(old.Spec.ControlPlaneEndpoint)
	hub.Spec.VApp.Name = old.Name
	if id := old.Spec.RDEID; id != hub.Spec.InfraID && strings.HasPrefix(id, capvcd.EntityPrefix) {
		hub.Spec.RDE.ID = id
	}
	if strings.HasPrefix(hub.Spec.InfraID, capvcd.EntityPrefix) || hub.Spec.RDE.ID != "" {
		hub.Spec.RDE.Mode = infrav1.RDEProject
	}
	hub.Status.Conditions = conditionsToHub(old.Status.Conditions)
	if old.Status.Ready {
		hub.Status.Initialization.Provisioned = ptr.To(true)
	}
	hub.Status.FailureDomains = failureDomainsToHub(old.Status.FailureDomains)
	if found := old.Status.VCDResourceMap.Ovdcs; len(found) > 0 && found[0].ID != "" {
		hub.Status.OVDC = &infrav1.ResourceReference{Name: found[0].Name, ID: found[0].ID}
	}
}

func clusterFromHub(hub *infrav1.VCDCluster, old *v1beta3.VCDCluster) {
	clusterSpecFromHub(&hub.Spec, hub, &old.Spec)
	old.Spec.ControlPlaneEndpoint = v1beta3.APIEndpoint{
		Host: hub.Spec.ControlPlaneEndpoint.Host,
		Port: int(hub.Spec.ControlPlaneEndpoint.Port),
	}
	old.Spec.RDEID = hub.Spec.RDE.ID
	if old.Spec.RDEID == "" && capvcd.IsClusterID(hub.Spec.InfraID) {
		old.Spec.RDEID = hub.Spec.InfraID
	}
	old.Status.InfraID = hub.Spec.InfraID
	old.Status.RDEVersionInUse = rdeVersion
	if strings.HasPrefix(hub.Spec.InfraID, capvcd.NoEntityPrefix) {
		old.Status.RDEVersionInUse = capvcd.NoEntityPrefix
	}
	old.Status.Conditions = conditionsFromHub(hub.Status.Conditions)
	old.Status.Ready = ptr.Deref(hub.Status.Initialization.Provisioned, false)
	old.Status.FailureDomains = failureDomainsFromHub(hub.Status.FailureDomains)
	if vdc := hub.Status.OVDC; vdc != nil {
		old.Status.Ovdc = vdc.Name
		old.Status.VCDResourceMap.Ovdcs = []v1beta3.VCDResource{{Type: vdcType, ID: vdc.ID, Name: vdc.Name}}
	}
	if network := hub.Status.OVDCNetwork; network != nil {
		old.Status.OvdcNetwork = network.Name
	}
}

// clusterSpecToHub sets the fields that clusters and cluster templates share. Fields that only v1beta4 has are set to
// the behavior of CAPVCD, not to the defaults of v1beta4.
func clusterSpecToHub(old *v1beta3.VCDClusterSpec, object metav1.Object, hub *infrav1.VCDClusterSpec) {
	hub.Site = strings.TrimRight(old.Site, "/")
	hub.Org = old.Org
	hub.OVDC = old.Ovdc
	hub.OVDCNetwork = old.OvdcNetwork
	credentialsToHub(&old.UserCredentialsContext, object, hub)
	hub.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway
	if old.LoadBalancerConfigSpec.UseOneArm {
		hub.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{
			ArmMode:       infrav1.ArmModeOneArm,
			HealthMonitor: infrav1.EndpointMonitorTCP,
		}
		hub.LoadBalancer.ArmMode = infrav1.ArmModeOneArm
	}
	hub.LoadBalancer.VIPSubnet = old.LoadBalancerConfigSpec.VipSubnet
	hub.VApp.Layout = infrav1.VAppPerCluster
	hub.CloudProvider.Mode = infrav1.CloudProviderExternal
	hub.Proxy = proxyToHub(old.ProxyConfigSpec)
	hub.OrphanedDiskPolicy = infrav1.OrphanedDiskRetain
	hub.RDE.Mode = infrav1.RDENone
	hub.RDE.ParentUID = old.ParentUID
	if old.UseAsManagementCluster {
		hub.RDE.UseAsManagementCluster = ptr.To(true)
	}
	if len(old.MultiZoneSpec.Zones) > 0 && old.Ovdc == "" {
		hub.FailureDomainSelector = &metav1.LabelSelector{}
	}
}

func clusterSpecFromHub(hub *infrav1.VCDClusterSpec, object metav1.Object, old *v1beta3.VCDClusterSpec) {
	old.Site = hub.Site
	old.Org = hub.Org
	old.Ovdc = hub.OVDC
	old.OvdcNetwork = hub.OVDCNetwork
	old.UserCredentialsContext = credentialsFromHub(hub, object.GetNamespace())
	old.LoadBalancerConfigSpec.UseOneArm = hub.LoadBalancer.ArmMode == infrav1.ArmModeOneArm
	if hub.ControlPlaneLoadBalancer.Type == infrav1.EndpointEdgeGateway {
		edge := hub.ControlPlaneLoadBalancer.EdgeGateway
		old.LoadBalancerConfigSpec.UseOneArm = edge != nil && edge.ArmMode == infrav1.ArmModeOneArm
	}
	old.LoadBalancerConfigSpec.VipSubnet = hub.LoadBalancer.VIPSubnet
	old.ProxyConfigSpec = v1beta3.ProxyConfig{
		HTTPProxy:  hub.Proxy.HTTPProxy,
		HTTPSProxy: hub.Proxy.HTTPSProxy,
		NoProxy:    strings.Join(hub.Proxy.NoProxy, ","),
	}
	old.ParentUID = hub.RDE.ParentUID
	old.UseAsManagementCluster = ptr.Deref(hub.RDE.UseAsManagementCluster, false)
}

// settleClusterSpec removes fields that are valid only with another endpoint type, in one-arm mode, with another cloud
// controller manager, or with an entity.
func settleClusterSpec(spec *infrav1.VCDClusterSpec) {
	if spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointEdgeGateway {
		spec.ControlPlaneLoadBalancer.EdgeGateway = nil
	}
	if edge := spec.ControlPlaneLoadBalancer.EdgeGateway; edge != nil && edge.ArmMode != infrav1.ArmModeOneArm {
		edge.OneArm = infrav1.OneArmSpec{}
	}
	if spec.LoadBalancer.ArmMode != infrav1.ArmModeOneArm {
		spec.LoadBalancer.OneArm = infrav1.OneArmSpec{}
	}
	if spec.CloudProvider.Mode != infrav1.CloudProviderManaged {
		spec.LoadBalancer = infrav1.LoadBalancerSpec{}
	}
	if spec.RDE.Mode != infrav1.RDEProject {
		spec.RDE = infrav1.RDESpec{Mode: spec.RDE.Mode}
	}
}

// infraIDOf returns the ID of a cluster, or an empty string. CAPVCD also keeps the ID in the spec, because `clusterctl
// move` drops the status.
func infraIDOf(old *v1beta3.VCDCluster) string {
	for _, id := range []string{old.Status.InfraID, old.Spec.RDEID} {
		if capvcd.IsClusterID(id) {
			return id
		}
	}
	return ""
}

func endpointToHub(old v1beta3.APIEndpoint) clusterv1.APIEndpoint {
	hub := clusterv1.APIEndpoint{Host: old.Host}
	if old.Port > 0 && old.Port <= math.MaxUint16 {
		hub.Port = int32(old.Port)
	}
	return hub
}

// proxyToHub converts the proxy settings. Pods get no proxy settings, as with CAPVCD.
func proxyToHub(old v1beta3.ProxyConfig) infrav1.ProxySpec {
	if old == (v1beta3.ProxyConfig{}) {
		return infrav1.ProxySpec{}
	}
	hub := infrav1.ProxySpec{
		HTTPProxy:  old.HTTPProxy,
		HTTPSProxy: old.HTTPSProxy,
		Site:       infrav1.SiteDirect,
		Pods:       infrav1.PodProxyNone,
	}
	for host := range strings.SplitSeq(old.NoProxy, ",") {
		host = strings.TrimSpace(host)
		if host != "" && !slices.Contains(hub.NoProxy, host) {
			hub.NoProxy = append(hub.NoProxy, host)
		}
	}
	return hub
}

func failureDomainsToHub(olds map[string]v1beta3.FailureDomainSpec) []clusterv1.FailureDomain {
	var hubs []clusterv1.FailureDomain
	for name, old := range olds {
		hubs = append(hubs, clusterv1.FailureDomain{
			Name:         name,
			ControlPlane: ptr.To(old.ControlPlane),
			Attributes:   old.Attributes,
		})
	}
	slices.SortFunc(hubs, func(a, b clusterv1.FailureDomain) int { return cmp.Compare(a.Name, b.Name) })
	return hubs
}

func failureDomainsFromHub(hubs []clusterv1.FailureDomain) map[string]v1beta3.FailureDomainSpec {
	olds := map[string]v1beta3.FailureDomainSpec{}
	for _, hub := range hubs {
		olds[hub.Name] = v1beta3.FailureDomainSpec{
			ControlPlane: ptr.Deref(hub.ControlPlane, false),
			Attributes:   hub.Attributes,
		}
	}
	return olds
}
