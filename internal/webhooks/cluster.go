// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
)

// maxVAppName is VCD's limit for the length of a vApp name.
const maxVAppName = 128

func clusterValidator() *validator[*infrav1.VCDCluster] {
	return &validator[*infrav1.VCDCluster]{
		kind:      "VCDCluster",
		finalizer: infrav1.ClusterFinalizer,
		spec:      func(c *infrav1.VCDCluster) any { return settings.Spec(c) },
		rules: func(c *infrav1.VCDCluster) field.ErrorList {
			errs := clusterSpecErrors(&c.Spec, field.NewPath("spec"))
			return append(errs, vAppNameErrors(c)...)
		},
		created: hostOfPoolErrors,
		always: func(c *infrav1.VCDCluster) field.ErrorList {
			at := field.NewPath("spec", "cloudProvider", "identityRef")
			return identityOfCCMErrors(&c.Spec, at)
		},
		recorded: clusterRecordChangeErrors,
		reserved: clusterRecordAdditionErrors,
		changes: func(_ context.Context, oldC, newC *infrav1.VCDCluster) (field.ErrorList, error) {
			return clusterFixedErrors(oldC, newC), nil
		},
		warnings: func(c *infrav1.VCDCluster) admission.Warnings {
			warnings := admission.Warnings(proxyWarnings(&c.Spec.Proxy))
			if c.Spec.ControlPlaneLoadBalancer.Type == infrav1.EndpointExternal && c.Spec.ControlPlaneEndpoint.Host == "" {
				warnings = append(warnings, "spec.controlPlaneEndpoint: the cluster waits until the host of an endpoint of type External is set")
			}
			return warnings
		},
	}
}

func clusterTemplateValidator() *validator[*infrav1.VCDClusterTemplate] {
	return &validator[*infrav1.VCDClusterTemplate]{
		kind: "VCDClusterTemplate",
		spec: func(t *infrav1.VCDClusterTemplate) any { return t.Spec },
		rules: func(t *infrav1.VCDClusterTemplate) field.ErrorList {
			errs := clusterSpecErrors(&t.Spec.Template.Spec, field.NewPath("spec", "template", "spec"))
			return slices.Concat(errs, switchesInTemplate(t, t.Spec.Template.ObjectMeta.Annotations),
				entityInTemplateErrors(t))
		},
		changes: func(ctx context.Context, before, t *infrav1.VCDClusterTemplate) (field.ErrorList, error) {
			if replacesCredentials(before, t) {
				return nil, nil
			}
			return templateUnchanged(ctx, t, "create a new VCDClusterTemplate and set it in the ClusterClass")
		},
	}
}

// replacesCredentials reports whether the only change of a template is that an identity replaces the credentials that it
// has from CAPVCD. No cluster was created from it, so this changes none.
func replacesCredentials(before, after *infrav1.VCDClusterTemplate) bool {
	if before.Spec.Template.Spec.CAPVCDCredentials == nil {
		return false
	}
	want := before.Spec.DeepCopy()
	want.Template.Spec.CAPVCDCredentials = nil
	want.Template.Spec.IdentityRef = after.Spec.Template.Spec.IdentityRef
	return equality.Semantic.DeepEqual(*want, after.Spec)
}

// clusterSpecErrors validates the spec of a cluster or of a cluster template.
func clusterSpecErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	errs := objectErrors(spec.OVDC, typeVDC, path.Child("ovdc"))
	errs = append(errs, objectErrors(spec.OVDCNetwork, typeNetwork, path.Child("ovdcNetwork"))...)
	errs = append(errs, endpointErrors(spec, path)...)
	errs = append(errs, metav1validation.ValidateLabelSelector(spec.FailureDomainSelector,
		metav1validation.LabelSelectorValidationOptions{}, path.Child("failureDomainSelector"))...)
	errs = append(errs, cloudProviderErrors(spec, path)...)
	errs = append(errs, proxyErrors(&spec.Proxy, path.Child("proxy"))...)
	errs = append(errs, rdeErrors(spec.RDE, path.Child("rde"))...)
	errs = append(errs, vAppMetadataErrors(spec.VAppMetadata, path.Child("vAppMetadata"))...)
	if spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete && spec.VApp.Layout == infrav1.VAppPerMachine {
		errs = append(errs, field.Forbidden(path.Child("orphanedDiskPolicy"),
			"cannot be Delete when vApp.layout is PerMachine: without a vApp of the cluster, the deletion of its VMs cannot be verified; use Retain and delete disks in VCD"))
	}
	if spec.VApp.Name != "" {
		errs = append(errs, vcdNameErrors(spec.VApp.Name, path.Child("vApp", "name"))...)
	}
	return errs
}

// vAppMetadataErrors rejects metadata that VCD would reject, and the key that proves which cluster a vApp of CAPVCD belongs
// to.
func vAppMetadataErrors(metadata []infrav1.MetadataEntry, path *field.Path) field.ErrorList {
	errs := metadataErrors(metadata, path)
	for i, entry := range metadata {
		if entry.Key == capvcd.MetadataKey {
			errs = append(errs, field.Forbidden(path.Index(i).Child("key"),
				"is reserved: it marks the vApps of a cluster that CAPVCD created"))
		}
	}
	return errs
}

func endpointErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	host := spec.ControlPlaneEndpoint.Host
	if host != "" {
		errs = append(errs, hostErrors(host, path.Child("controlPlaneEndpoint", "host"))...)
	}
	if kube := spec.ControlPlaneLoadBalancer.KubeVIP; kube != nil {
		at := path.Child("controlPlaneLoadBalancer", "kubeVIP")
		if kube.AddressSource == infrav1.VIPSourceDHCP {
			errs = append(errs, dnsNameErrors(host, path.Child("controlPlaneEndpoint", "host"))...)
		}
		errs = append(errs, secondaryErrors(host, kube.SecondaryAddress, at.Child("secondaryAddress"))...)
		errs = append(errs, kubeVIPErrors(kube, []string{host, kube.SecondaryAddress}, at)...)
	}
	if edge := spec.ControlPlaneLoadBalancer.EdgeGateway; edge != nil {
		at := path.Child("controlPlaneLoadBalancer", "edgeGateway")
		errs = append(errs, secondaryErrors(host, edge.SecondaryAddress, at.Child("secondaryAddress"))...)
		errs = append(errs, edgeGatewayErrors(spec, at)...)
	}
	return errs
}

// secondaryErrors validates the second address of an endpoint. Both addresses must be known and of different families.
func secondaryErrors(host, secondary string, path *field.Path) field.ErrorList {
	if secondary == "" {
		return nil
	}
	if errs := unicastErrors(secondary, path); len(errs) > 0 {
		return errs
	}
	first, err := netip.ParseAddr(host)
	if err != nil || first.Is4() == netip.MustParseAddr(secondary).Is4() {
		return invalid(path, secondary, "requires an address of the other IP family in controlPlaneEndpoint.host")
	}
	return nil
}

// hostOfPoolErrors rejects a host that was not assigned from the pool, because the pool could assign the address to
// others.
func hostOfPoolErrors(c *infrav1.VCDCluster) field.ErrorList {
	kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP
	if c.Spec.InfraID != "" || c.Spec.ControlPlaneEndpoint.Host == "" || kube == nil || len(kube.PoolRefs) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "controlPlaneEndpoint", "host"),
		"is assigned from controlPlaneLoadBalancer.kubeVIP.poolRefs: remove the host, or set addressSource to Manual and remove poolRefs")}
}

func edgeGatewayErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	edge := spec.ControlPlaneLoadBalancer.EdgeGateway
	var errs field.ErrorList
	errs = append(errs, objectErrors(edge.Name, typeGateway, path.Child("name"))...)
	errs = append(errs, oneArmErrors(edge.OneArm, path.Child("oneArm"))...)
	for _, a := range []string{spec.ControlPlaneEndpoint.Host, edge.SecondaryAddress} {
		if addr, err := netip.ParseAddr(a); err == nil && addr.Is6() && edge.ArmMode == infrav1.ArmModeOneArm {
			errs = append(errs, field.Invalid(path.Child("armMode"), edge.ArmMode,
				"cannot be OneArm with the IPv6 address "+a+", because one-arm mode translates addresses: use IPv4, or TwoArm"))
		}
	}
	return append(errs, extraPortErrors(spec, path.Child("extraPorts"))...)
}

func extraPortErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	own := cmp.Or(spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort)
	for i, p := range spec.ControlPlaneLoadBalancer.EdgeGateway.ExtraPorts {
		if p.Port == own {
			return invalid(path.Index(i).Child("port"), strconv.Itoa(int(p.Port)),
				"is the port of the endpoint: use another port, or set controlPlaneEndpoint.port")
		}
	}
	return nil
}

// vAppNameErrors validates the name of the cluster, which is the default name of its vApp.
func vAppNameErrors(c *infrav1.VCDCluster) field.ErrorList {
	if c.Spec.VApp.Name != "" || len(c.Name) <= maxVAppName {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), c.Name,
		fmt.Sprintf("is also the name of the vApp, which has at most %d characters: shorten it or set spec.vApp.name",
			maxVAppName))}
}
