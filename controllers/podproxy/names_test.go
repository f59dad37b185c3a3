// SPDX-License-Identifier: Apache-2.0

package podproxy

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/secret"
)

// TestTheSecretIsNotAClusterAPISecret compares with the CA of the front proxy of a cluster named <cluster>-pod.
func TestTheSecretIsNotAClusterAPISecret(t *testing.T) {
	NewWithT(t).Expect(suffix).NotTo(HaveSuffix("-" + string(secret.FrontProxyCA)))
}
