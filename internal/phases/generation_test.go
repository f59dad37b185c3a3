// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// GitOps tools only read a status of the generation that they applied.
func TestObservedGenerationIsTheReconciledGeneration(t *testing.T) {
	g := NewWithT(t)
	meta := metav1.ObjectMeta{Generation: 7}
	for _, obj := range []Object{
		&infrav1.VCDCluster{ObjectMeta: meta},
		&infrav1.VCDMachine{ObjectMeta: meta},
		&infrav1.VCDMachineTemplate{ObjectMeta: meta},
		&infrav1.VCDIdentity{ObjectMeta: meta},
		&infrav1.VCDClusterIdentity{ObjectMeta: meta},
		&infrav1.VCDFailureDomain{ObjectMeta: meta},
		&infrav1.VCDDeploymentZone{ObjectMeta: meta},
		&infrav1.VCDRemediation{ObjectMeta: meta},
	} {
		setReady(obj, []Phase[any]{})

		g.Expect(obj).To(HaveField("Status.ObservedGeneration", int64(7)), "%T", obj)
	}
}
