// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
)

var _ = Describe("Adopting a control plane", Label("adoption"), func() {
	clusterapi.KCPAdoptionSpec(ctx, func() clusterapi.KCPAdoptionSpecInput {
		return clusterapi.KCPAdoptionSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
		}
	})
})

// adoptionTemplate is the cluster template of the adoption spec.
const adoptionTemplate = "cluster-template-kcp-adoption.yaml"

// firstControlPlane is a control plane without a KubeadmControlPlane. Its KubeadmConfig is the one that the
// KubeadmControlPlane of the template creates.
const firstControlPlane = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDMachine
metadata:
  name: "${CLUSTER_NAME}-control-plane-0"
  labels:
    cluster.x-k8s.io/control-plane: ""
spec:
  catalog: "${VCD_CATALOG}"
  template: "${VCD_TEMPLATE_NAME}"
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  name: "${CLUSTER_NAME}-control-plane-0"
  labels:
    cluster.x-k8s.io/control-plane: ""
spec:
  initConfiguration:
    nodeRegistration:
      name: '{{ local_hostname }}'
      kubeletExtraArgs:
        - name: cloud-provider
          value: external
        - name: provider-id
          value: '{{ ds.meta_data.provider_id }}'
  users:
    - name: root
      sshAuthorizedKeys: []
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: "${CLUSTER_NAME}-control-plane-0"
  labels:
    cluster.x-k8s.io/control-plane: ""
spec:
  clusterName: "${CLUSTER_NAME}"
  version: "${KUBERNETES_VERSION}"
  bootstrap:
    configRef:
      apiGroup: bootstrap.cluster.x-k8s.io
      kind: KubeadmConfig
      name: "${CLUSTER_NAME}-control-plane-0"
  infrastructureRef:
    apiGroup: infrastructure.cluster.x-k8s.io
    kind: VCDMachine
    name: "${CLUSTER_NAME}-control-plane-0"`

// withAdoption creates the template of the adoption spec from the one with an endpoint on an edge gateway. The objects
// of step 1 are a cluster and a control plane machine, those of step 2 a KubeadmControlPlane that adopts the machine.
//
// The spec expects that all Secrets of the cluster belong to Cluster API. Therefore the cluster has neither kube-vip
// nor a cloud controller manager, for which this provider creates Secrets.
func withAdoption(template []byte) ([]byte, error) {
	template, err := replaceOnce(template, []byte("mode: Managed\n    identityRef:\n      kind: VCDIdentity\n      name: \"${CLUSTER_NAME}-ccm\""),
		[]byte("mode: None"))
	if err != nil {
		return nil, err
	}
	const controlPlaneRef = `  controlPlaneRef:
    apiGroup: controlplane.cluster.x-k8s.io
    kind: KubeadmControlPlane
    name: "${CLUSTER_NAME}-control-plane"
`
	var first, second [][]byte
	for _, document := range bytes.Split(template, separator) {
		switch {
		case has(document, "Cluster", "${CLUSTER_NAME}"):
			without, err := replaceOnce(document, []byte(controlPlaneRef), nil)
			if err != nil {
				return nil, err
			}
			first = append(first, without)
			second = append(second, document)
		case has(document, "VCDCluster", "${CLUSTER_NAME}"), has(document, "VCDIdentity", "${CLUSTER_NAME}"),
			has(document, "Secret", "${CLUSTER_NAME}-credentials"):
			first = append(first, document)
		case has(document, "KubeadmControlPlane", "${CLUSTER_NAME}-control-plane"),
			has(document, "VCDMachineTemplate", "${CLUSTER_NAME}-control-plane"):
			second = append(second, document)
		}
	}
	if len(first) != 4 || len(second) != 3 {
		return nil, fmt.Errorf("template %s does not have the expected objects", gatewayTemplate)
	}
	first = append(first, bytes.Split([]byte(firstControlPlane), separator)...)
	return bytes.Join(append(labeled(first, "kcp-adoption.step1"), labeled(second, "kcp-adoption.step2")...), separator), nil
}

// has reports whether a document is the object with a kind and a name.
func has(document []byte, kind, name string) bool {
	return bytes.Contains(document, fmt.Appendf(nil, "\nkind: %s\nmetadata:\n  name: %q\n", kind, name))
}

// labeled adds a label to the metadata of each document.
func labeled(documents [][]byte, label string) [][]byte {
	var out [][]byte
	for _, document := range documents {
		before := []byte("\nmetadata:\n")
		after := []byte("\nmetadata:\n  labels:\n")
		if labels := []byte("\n  labels:\n"); bytes.Contains(document, labels) {
			before = labels
			after = labels
		}
		out = append(out, bytes.Replace(document, before, fmt.Appendf(after, "    %s: \"\"\n", label), 1))
	}
	return out
}
