package cluster

import (
	"context"
	"fmt"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// kubeVIPSuffix follows the name of the Cluster in the name of the Secret with kube-vip's manifest.
	kubeVIPSuffix = "-kube-vip"
	// daemonSetSuffix follows it in the names of the Secret with kube-vip's DaemonSet and of its ClusterResourceSet.
	daemonSetSuffix = kubeVIPSuffix + "-daemonset"
)

// writeKubeVIP writes the Secret with kube-vip's manifest, which templates of control planes name.
func writeKubeVIP(ctx context.Context, s *scope, data map[string][]byte) (phases.Outcome, error) {
	secret := nodeSecret(s, kubeVIPSuffix, "kube-vip's manifest")
	secret.Creating = func(ctx context.Context) error {
		spoofGuard, err := s.session.SpoofGuard(ctx, s.network.Ref)
		if err == nil && spoofGuard != "" {
			vipMayBeFiltered(s.Recorder, s.vcdCluster, s.network.Name, spoofGuard)
		}
		return err
	}
	return secret.Write(ctx, data)
}

// writeDaemonSet has Cluster API apply kube-vip's DaemonSet, if that is the mode.
func writeDaemonSet(ctx context.Context, s *scope, config kubevip.Config) (phases.Outcome, error) {
	if config.Mode != kubevip.DaemonSet {
		return phases.Done, nil
	}
	objects, err := kubevip.Objects(config)
	if err != nil {
		return phases.Done, fmt.Errorf("rendering kube-vip's DaemonSet: %w", err)
	}
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return phases.Done, err
	}
	secret := nodeSecret(s, daemonSetSuffix, "kube-vip's DaemonSet")
	secret.Type = addonsv1.ClusterResourceSetSecretType
	if out, err := secret.Write(ctx, map[string][]byte{resourceset.ManifestsKey: manifests}); err != nil ||
		out != phases.Done {
		return out, err
	}
	set := resourceset.Set{
		Client: s.Client, Owner: s.vcdCluster, Cluster: s.cluster, Label: infrav1.KubeVIPLabel,
		WatchFilter: s.WatchFilterValue,
	}
	if err := set.Create(ctx, daemonSetSuffix, addonsv1.ClusterResourceSetStrategyReconcile); err != nil {
		return phases.Done, err
	}
	return phases.Done, set.Select(ctx, true)
}

// nodeSecret returns the Secret of the cluster whose name ends with suffix.
func nodeSecret(s *scope, suffix, holds string) nodesecret.Secret {
	return nodesecret.Secret{
		Client: s.Client, Live: s.Live, Owner: s.vcdCluster, Cluster: s.cluster.Name, Suffix: suffix, Holds: holds,
	}
}
