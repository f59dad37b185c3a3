package cluster

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
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

// nodeSecret returns the Secret of the cluster whose name ends with suffix.
func nodeSecret(s *scope, suffix, holds string) nodesecret.Secret {
	return nodesecret.Secret{
		Client: s.Client, Live: s.Live, Owner: s.vcdCluster, Cluster: s.cluster.Name, Suffix: suffix, Holds: holds,
	}
}
