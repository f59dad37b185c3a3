// SPDX-License-Identifier: Apache-2.0

package nodesecret

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
)

// OfProxy passes the Secrets with the proxy settings of nodes.
func OfProxy() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return strings.HasSuffix(object.GetName(), nodeproxy.SecretSuffix)
	})
}
