// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// configName names the configuration in the workload cluster in messages.
const configName = "ConfigMap " + addons.Namespace + "/" + addons.ConfigMapName

// remedies maps keys to remedies for differences between the configuration in the workload cluster and the new one.
var remedies = map[string]string{
	"clusterid":              "it is part of the names of load balancers in VCD, and spec.infraID is immutable: keep spec.cloudProvider.mode External",
	"vAppName":               "set spec.vApp.name of a new VCDCluster",
	"loadbalancer.network":   "it determines the edge gateway: set spec.ovdcNetwork to the same network",
	"loadbalancer.oneArm":    "set spec.loadBalancer.armMode to OneArm, and oneArm.internalRange to the value found",
	"loadbalancer.vipSubnet": "set spec.loadBalancer.vipSubnet to the value found",
	"loadbalancer.certAlias": "set spec.loadBalancer.certificateAlias to the value found",
	"loadbalancer.enabled":   "correct spec.loadBalancer.mode",
}

// inheritedBy returns the values that a cluster inherits from the configuration of another cloud controller manager, as
// far as its spec does not set them.
func inheritedBy(c *infrav1.VCDCluster) infrav1.InheritedLoadBalancer {
	values := c.Spec.RecordedState.InheritedLoadBalancer
	if c.Spec.LoadBalancer.ArmMode != "" {
		values.OneArm = infrav1.AddressRange{}
	}
	return values
}

// complete sets missing values of b to inherited ones.
func complete(b *vcdconfig.LoadBalancer, from infrav1.InheritedLoadBalancer) error {
	var errs [2]error
	if from.OneArm != (infrav1.AddressRange{}) && b.OneArm == nil {
		var addresses vcdconfig.Range
		addresses, errs[0] = vcdconfig.NewRange(from.OneArm.StartIP, from.OneArm.EndIP)
		b.OneArm = &addresses
	}
	if from.VIPSubnet != "" && !b.VIPSubnet.IsValid() {
		b.VIPSubnet, errs[1] = netip.ParsePrefix(from.VIPSubnet)
	}
	if b.CertAlias == "" {
		b.CertAlias = from.CertificateAlias
	}
	return errors.Join(errs[:]...)
}

// inheritedNames returns the keys and values that are inherited, for messages.
func inheritedNames(values infrav1.InheritedLoadBalancer) []string {
	oneArm := ""
	if values.OneArm != (infrav1.AddressRange{}) {
		oneArm = values.OneArm.StartIP + "-" + values.OneArm.EndIP
	}
	var all []string
	for key, value := range map[string]string{
		"oneArm":    oneArm,
		"vipSubnet": values.VIPSubnet,
		"certAlias": values.CertificateAlias,
	} {
		if value != "" {
			all = append(all, key+" "+value)
		}
	}
	slices.Sort(all)
	return all
}

// takeOver ensures, before anything is installed, that the workload cluster has no other cloud controller manager, and
// that the new one will serve Services as the previous one did. It deletes an immutable configuration, which could not
// be replaced.
func (s *scope) takeOver(ctx context.Context) (phases.Result, error) {
	if s.set.Secret != nil {
		return phases.Done, nil
	}
	return s.set.Ask(ctx, func(ctx context.Context, w *addon.Guest) (phases.Result, error) {
		return s.takeOverFrom(ctx, &guest{w})
	})
}

func (s *scope) takeOverFrom(ctx context.Context, w *guest) (phases.Result, error) {
	config, err := w.config(ctx)
	if err != nil {
		return phases.Done, err
	}
	if config == nil || config.Annotations[infrav1.CloudProviderOfAnnotation] == w.InfraID {
		return w.foreignBeside(ctx) // The configuration is missing, or the manager wrote it.
	}
	if out, err := s.inherit(ctx, w, config); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := w.foreignBeside(ctx); err != nil || out != phases.Done || !immutable(config) {
		return out, err
	}
	err = w.Delete(ctx, config, client.Preconditions{UID: &config.UID, ResourceVersion: &config.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return phases.Done, &addon.Error{Err: err}
	}
	return phases.Done, nil
}

// inherit compares the existing configuration with the new one, and takes over values that the VCDCluster does not set.
func (s *scope) inherit(ctx context.Context, w *guest, config *corev1.ConfigMap) (phases.Result, error) {
	found, err := w.parse(ctx, config)
	if lost := (*addon.Error)(nil); errors.As(err, &lost) {
		return phases.Done, err
	}
	if err != nil {
		return phases.Fail(intervals.Remedy, infrav1.CloudProviderConfigConflictReason,
			"%s of another cloud controller manager cannot be parsed (%v): correct it, or delete it if no load balancers depend on it", configName, err), nil
	}
	values := infrav1.InheritedLoadBalancer{CertificateAlias: found.LoadBalancer.CertAlias}
	if found.LoadBalancer.OneArm != nil && s.vcdCluster.Spec.LoadBalancer.ArmMode == "" {
		values.OneArm.StartIP = found.LoadBalancer.OneArm.StartIP.String()
		values.OneArm.EndIP = found.LoadBalancer.OneArm.EndIP.String()
	}
	if found.LoadBalancer.VIPSubnet.IsValid() {
		values.VIPSubnet = found.LoadBalancer.VIPSubnet.String()
	}
	ours, err := ownConfig(s)
	if err != nil {
		return phases.Done, err
	}
	wanted, err := renderedWith(ours, values)
	if err != nil {
		return phases.Done, err
	}
	if vdc := s.vcdCluster.Status.OVDC; found.VCD.VDC == "" || found.VCD.VDC == vdc.Name {
		found.VCD.VDC = vdc.ID
	}
	if differences := vcdconfig.Differences(found, wanted); len(differences) > 0 {
		return phases.Fail(intervals.Remedy, infrav1.CloudProviderConfigConflictReason,
			"%s of another cloud controller manager differs from this VCDCluster, which could move load balancers: %s; or delete the ConfigMap if the change is intended", configName, describe(differences)), nil
	}
	return phases.Done, s.record(ctx, values)
}

// renderedWith returns a configuration with inherited values, as the cloud controller manager would read it.
func renderedWith(config *vcdconfig.Config, values infrav1.InheritedLoadBalancer) (vcdconfig.Config, error) {
	var read vcdconfig.Config
	if err := complete(&config.LoadBalancer, values); err != nil {
		return read, err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return read, fmt.Errorf("writing the configuration of the cloud controller manager: %w", err)
	}
	return read, decode(text, &read, "")
}

// record stores the inherited values before their source is replaced. Until then, the source may change, and so do the
// stored values.
func (s *scope) record(ctx context.Context, values infrav1.InheritedLoadBalancer) error {
	c := s.vcdCluster
	if c.Spec.RecordedState.InheritedLoadBalancer == values {
		return nil
	}
	c.Spec.RecordedState.InheritedLoadBalancer = values
	if err := s.patcher.Save(ctx); err != nil {
		return err
	}
	if values != (infrav1.InheritedLoadBalancer{}) {
		takenOver(s.reconciler.Recorder, c, inheritedNames(values))
	}
	return nil
}

// parse reads the configuration of another cloud controller manager, and the ID of the cluster from the Secret beside
// it. The error contains no values of secrets.
func (w *guest) parse(ctx context.Context, config *corev1.ConfigMap) (vcdconfig.Config, error) {
	var found vcdconfig.Config
	text, ok := config.Data[addons.ConfigKey]
	if !ok {
		return found, fmt.Errorf("key %s is missing", addons.ConfigKey)
	}
	id := &corev1.Secret{}
	err := w.Get(ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ClusterIDName}, id)
	if client.IgnoreNotFound(err) != nil {
		return found, &addon.Error{Err: err}
	}
	return found, decode([]byte(text), &found, strings.TrimSpace(string(id.Data[addons.ClusterIDKey])))
}

// decode reads a configuration. The given ID is the cluster's if the configuration has none.
func decode(text []byte, into *vcdconfig.Config, id string) error {
	report, err := ccmconfig.Decode(text, into, ccmconfig.Environment{Getenv: func(name string) string {
		if name == "CLUSTER_ID" {
			return id
		}
		return ""
	}})
	if err != nil {
		return err
	}
	return report.Err()
}

// describe describes differences with their remedies.
func describe(differences []vcdconfig.Difference) string {
	all := make([]string, 0, len(differences))
	for _, d := range differences {
		remedy := remedies[d.Key]
		if remedy == "" {
			remedy = "set the VCDCluster to the value found"
		}
		all = append(all, fmt.Sprintf("%s is %s now and would become %s (%s)", d.Key, orNone(d.Found),
			orNone(d.Wanted), remedy))
	}
	return strings.Join(all, "; ")
}

func orNone(value string) string {
	if value == "" {
		return "unset"
	}
	return value
}
