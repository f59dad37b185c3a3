// SPDX-License-Identifier: Apache-2.0

// Package testcni provides stand-ins for the published files of network plug-ins. With them, hack/cni-manifests.sh runs
// without access to the internet, and its results can be installed in simulated clusters.
package testcni

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons/chart"
)

const calico = `apiVersion: v1
kind: ConfigMap
metadata:
  name: calico-config
  namespace: kube-system
data:
  calico_backend: vxlan
  tunnel: "CrossSubnet"
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: calico-node
  namespace: kube-system
spec:
  selector:
    matchLabels:
      app: calico-node
  template:
    metadata:
      labels:
        app: calico-node
    spec:
      containers:
        - name: node
          image: quay.io/calico/node:v3.0.0
`

const ciliumAgent = `apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  annotations:
    ipam: {{ .Values.ipam.mode }}
    ipv6: "{{ .Values.ipv6.enabled }}"
spec:
  selector:
    matchLabels:
      app: cilium
  template:
    metadata:
      labels:
        app: cilium
    spec:
      containers:
        - name: agent
          image: "quay.io/cilium/cilium:v1.0.0@sha256:0000000000000000000000000000000000000000000000000000000000000000"
`

const ciliumCertificate = `{{- if .Values.hubble.enabled }}
apiVersion: v1
kind: Secret
metadata:
  name: hubble-server-certs
  namespace: {{ .Release.Namespace }}
{{- end }}
`

// WriteSources writes the stand-ins to a folder, and returns the path of the file that lists them.
func WriteSources(folder string) (string, error) {
	files := []addons.File{
		{Name: "Chart.yaml", Content: []byte("apiVersion: v2\nname: cilium\nversion: 1.0.0\n")},
		{Name: "values.yaml", Content: []byte("ipam: {mode: cluster-pool}\nipv6: {enabled: false}\nhubble: {enabled: true}\n")},
		{Name: "templates/NOTES.txt", Content: []byte("Cilium is installed.\n")},
		{Name: "templates/agent.yaml", Content: []byte(ciliumAgent)},
		{Name: "templates/certificate.yaml", Content: []byte(ciliumCertificate)},
	}
	var cilium bytes.Buffer
	if err := chart.Write(&cilium, files, time.Unix(0, 0)); err != nil {
		return "", err
	}
	var list bytes.Buffer
	for _, source := range []addons.File{
		{Name: "calico", Content: []byte(calico)},
		{Name: "cilium", Content: cilium.Bytes()},
	} {
		path := filepath.Join(folder, source.Name)
		if err := os.WriteFile(path, source.Content, 0o600); err != nil {
			return "", fmt.Errorf("writing the stand-in for %s: %w", source.Name, err)
		}
		fmt.Fprintf(&list, "%s %x file://%s\n", source.Name, sha256.Sum256(source.Content), path)
	}
	path := filepath.Join(folder, "sources.txt")
	return path, os.WriteFile(path, list.Bytes(), 0o600)
}
