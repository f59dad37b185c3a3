// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"

// nodeSecret returns the Secret of the cluster whose name ends with suffix.
func nodeSecret(s *scope, suffix, holds string) nodesecret.Secret {
	return nodesecret.Secret{
		Client:  s.reconciler.Client,
		Live:    s.reconciler.Live,
		Owner:   s.vcdCluster,
		Cluster: s.cluster.Name,
		Suffix:  suffix,
		Holds:   holds,
	}
}
