// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMain(m *testing.M) { testtime.Main(m) }

// A shell runs the program.
type shell struct {
	*WithT

	sim         *vcdsim.Simulator
	env         map[string]string
	objects     []client.Object
	in          string
	reader      io.Reader // instead of in
	log         string    // of the manager
	logError    error     // of reading the log
	previousLog string    // of the manager, before its last restart
	out         bytes.Buffer
	errors      bytes.Buffer
}

const password = "canary-password"

func newShell(t *testing.T, mods ...func(*vcdsim.Model)) *shell {
	t.Helper()
	s := &shell{WithT: NewWithT(t), env: map[string]string{}}
	model := vcdsim.K8sTenant()
	model.Orgs[1].Users[1].Password = password
	for _, mod := range mods {
		mod(&model)
	}
	var err error
	s.sim, err = vcdsim.New(vcdsim.Config{Model: model, Seed: 1})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = s.sim.Close() })
	return s
}

// useEnvironment makes the program log in with the credentials in the environment.
func (s *shell) useEnvironment(t *testing.T) {
	t.Helper()
	s.env = map[string]string{
		"VCD_SITE":         s.sim.URL(),
		"VCD_ORGANIZATION": "acme",
		"VCD_USERNAME":     "capvcd",
		"VCD_PASSWORD":     password,
		"VCD_CA_FILE":      s.file(t, "ca.pem", string(s.sim.CA())),
	}
}

func (s *shell) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	s.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// run runs the program and returns its exit code.
func (s *shell) run(t *testing.T, args ...string) int {
	t.Helper()
	s.out.Reset()
	s.errors.Reset()
	interactive := s.in != "" || s.reader != nil
	if s.reader == nil {
		s.reader = strings.NewReader(s.in)
		defer func() { s.reader = nil }()
	}
	p := &program{
		name:        "vcdctl",
		getenv:      func(name string) string { return s.env[name] },
		in:          s.reader,
		out:         &s.out,
		errors:      &s.errors,
		podLog:      s.podLog,
		interactive: func() bool { return interactive },
		connect: func(kubeContext string) (client.Client, string, error) {
			if kubeContext == "gone" {
				return nil, "", errors.New("no such context")
			}
			return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(s.objects...).Build(), "team-a", nil
		},
	}
	code := p.run(t.Context(), args)
	for _, printed := range []string{s.out.String(), s.errors.String()} {
		s.Expect(printed).NotTo(ContainSubstring(password))
	}
	return code
}

func (s *shell) identity(mods ...func(*infrav1.VCDIdentity)) []client.Object {
	i := &infrav1.VCDIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "tenant"}}
	i.Spec.Site = s.sim.URL()
	i.Spec.SecretRef.Name = "tenant-credentials"
	i.Spec.TLS.CABundle = string(s.sim.CA())
	for _, mod := range mods {
		mod(i)
	}
	return []client.Object{
		i,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "tenant-credentials"},
			Data:       map[string][]byte{"username": []byte("capvcd"), "password": []byte(password)},
		},
	}
}

func TestDoctorReadsTheEnvironment(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)

	code := s.run(t, "doctor", "--template", "kubernetes/ubuntu-2404-kube-v1.36.3")

	s.Expect(code).To(Equal(exitOK), s.errors.String()+s.out.String())
	s.Expect(s.out.String()).To(And(ContainSubstring("user capvcd"), ContainSubstring("checks passed")))
	s.Expect(s.errors.String()).To(BeEmpty())
}

func TestDoctorReportsAFault(t *testing.T) {
	s := newShell(t, func(m *vcdsim.Model) { m.Orgs[1].VDCs[0].Disabled = true })
	s.useEnvironment(t)

	s.Expect(s.run(t, "doctor")).To(Equal(exitFindings))
	s.Expect(s.out.String()).To(MatchRegexp(`PROBLEM +vdc +VDC acme-vdc is disabled.*: ask the provider to enable it`))

	s.Expect(s.run(t, "doctor", "-o", "json")).To(Equal(exitFindings))
	var report doctor.Report
	s.Expect(json.Unmarshal(s.out.Bytes(), &report)).To(Succeed())
	s.Expect(report.Findings).To(HaveLen(1))
}

func TestStrictModeTurnsWarningsIntoFindings(t *testing.T) {
	s := newShell(t, func(m *vcdsim.Model) { m.Orgs[1].StorageLease = 1 << 50 })
	s.useEnvironment(t)

	s.Expect(s.run(t, "doctor")).To(Equal(exitOK), s.out.String())
	s.Expect(s.run(t, "doctor", "--strict")).To(Equal(exitFindings))
}

func TestDoctorReadsAFile(t *testing.T) {
	s := newShell(t)
	ca := s.file(t, "ca.pem", string(s.sim.CA()))
	config := s.file(t, "vcd.yaml", "site: "+s.sim.URL()+"\norg: acme\nusername: capvcd\npassword: "+password+
		"\ncaFile: "+ca+"\n")

	s.Expect(s.run(t, "doctor", "--config", config)).To(Equal(exitOK), s.errors.String())
}

func TestDoctorReadsAnIdentity(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()

	s.Expect(s.run(t, "doctor", "--identity", "tenant", "--org", "acme")).To(Equal(exitOK), s.errors.String())
}

// manifestOf returns a cluster whose cloud controller manager has its own identity, with a password.
func (s *shell) manifestOf(password string) string {
	return `
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDCluster, metadata: {name: demo}, spec: {
site: "` + s.sim.URL() + `", org: acme, ovdc: acme-vdc, ovdcNetwork: nodes, identityRef: {name: demo},
controlPlaneEndpoint: {host: 192.168.100.200}, controlPlaneLoadBalancer: {type: KubeVIP}, loadBalancer: {mode: Disabled},
cloudProvider: {mode: Managed, identityRef: {kind: VCDIdentity, name: ccm}}}}
---
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDIdentity, metadata: {name: ccm}, spec: {
site: "` + s.sim.URL() + `", shareWithClusters: true, secretRef: {name: ccm}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: ccm}, stringData: {username: capvcd, password: "` + password + `"}}
`
}

func TestDoctorLogsInWithEachIdentityOfAManifest(t *testing.T) {
	for name, tt := range map[string]struct {
		password string
		code     int
		says     string
	}{
		"correct credentials": {password, exitOK, "VCDIdentity ccm logs in, for the cloud controller manager"},
		"wrong credentials":   {"wrong", exitFindings, "cannot use VCDIdentity ccm, the identity of the cloud controller manager"},
		"no credentials":      {"", exitFindings, "Secret ccm contains no credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.useEnvironment(t)
			manifest := s.file(t, "demo.yaml", s.manifestOf(tt.password))

			code := s.run(t, "doctor", "-f", manifest, "--ca-file", s.env["VCD_CA_FILE"])

			s.Expect(code).To(Equal(tt.code), s.out.String()+s.errors.String())
			s.Expect(s.out.String()).To(ContainSubstring(tt.says))
		})
	}
}

// topologyOf returns a Cluster of ClusterClass quick-start that suits the tenant of the simulator.
func (s *shell) topologyOf() string {
	return `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo}
spec:
  topology:
    classRef: {name: quick-start}
    version: v1.36.3
    controlPlane: {replicas: 3}
    workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 2}]}
    variables:
      - name: vcd
        value: {site: "` + s.sim.URL() + `", org: acme, ovdc: acme-vdc, ovdcNetwork: nodes, identityRef: {name: tenant}}
      - {name: controlPlaneEndpoint, value: {host: 192.168.100.200}}
      - {name: image, value: {catalog: kubernetes}}
      - {name: loadBalancer, value: {mode: Disabled}}
      - {name: cloudProvider, value: {mode: None}}
`
}

const quickStart = "../../templates/clusterclass-quick-start.yaml"

func TestDoctorChecksATopologyWhoseClassIsInAnotherFile(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)

	code := s.run(t, "doctor", "-f", s.file(t, "demo.yaml", s.topologyOf()), "-f", quickStart)

	s.Expect(code).To(Equal(exitOK), s.out.String()+s.errors.String())
	s.Expect(s.out.String()).To(ContainSubstring("checks passed"))
}

func TestDoctorChecksATopologyWhoseClassIsInTheManagementCluster(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()
	class, err := os.ReadFile(quickStart)
	s.Expect(err).NotTo(HaveOccurred())
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(class), 1024)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); err != nil {
			s.Expect(err).To(MatchError(io.EOF))
			break
		}
		object.SetNamespace("team-a")
		s.objects = append(s.objects, object)
	}
	ca := s.file(t, "ca.pem", string(s.sim.CA()))

	code := s.run(t, "doctor", "-f", s.file(t, "demo.yaml", s.topologyOf()), "--ca-file", ca)

	s.Expect(code).To(Equal(exitOK), s.out.String()+s.errors.String())
}

func TestDoctorReadsWhetherTheManagementClusterInstallsTheNetworkPlugin(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()
	ca := s.file(t, "ca.pem", string(s.sim.CA()))
	topology := strings.Replace(s.topologyOf(), "{name: demo}", "{name: demo, labels: {cni: cilium}}", 1)
	args := []string{"doctor", "-f", s.file(t, "demo.yaml", topology), "-f", quickStart, "--ca-file", ca}

	s.Expect(s.run(t, args...)).To(Equal(exitOK), s.out.String()+s.errors.String())
	s.Expect(s.out.String()).To(ContainSubstring("WARNING  manifest"))
	set := &unstructured.Unstructured{}
	s.Expect(yaml.Unmarshal([]byte(`
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: cni-cilium, namespace: team-a}
spec: {clusterSelector: {matchLabels: {cni: cilium}}}
`), &set.Object)).To(Succeed())
	s.objects = append(s.objects, set)

	s.Expect(s.run(t, args...)).To(Equal(exitOK), s.out.String()+s.errors.String())
	s.Expect(s.out.String()).NotTo(ContainSubstring("WARNING  manifest"))
}

func TestDoctorSuggestsARemedyIfNoClassIsFound(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)
	manifest := s.file(t, "demo.yaml", s.topologyOf())

	for _, context := range []string{"", "gone"} {
		s.Expect(s.run(t, "doctor", "-f", manifest, "--context", context)).To(Equal(exitError))
		s.Expect(s.errors.String()).To(And(ContainSubstring("ClusterClass quick-start"),
			ContainSubstring("pass its file with another -f")))
	}
}

func TestRejectedLogins(t *testing.T) {
	s := newShell(t)
	account := s.identity(func(i *infrav1.VCDIdentity) { i.Spec.Type = infrav1.CredentialServiceAccount })
	chained := s.identity()
	chained[1].SetAnnotations(map[string]string{infrav1.TokenChainAnnotation: "{}"})
	tests := []struct {
		name    string
		objects []client.Object
		env     map[string]string
		args    []string
		want    string
	}{
		{name: "no credentials", want: "no credentials"},
		{
			name:    "a service account. Each login rotates",
			objects: account,
			args:    []string{"--identity", "tenant", "--org", "acme"},
			want:    "service account",
		},
		{
			name:    "a service account token",
			objects: chained,
			args:    []string{"--identity", "tenant", "--org", "acme"},
			want:    "only its current client may use",
		},
		{
			name:    "an identity at another site",
			objects: s.identity(),
			args:    []string{"--identity", "tenant", "--org", "acme", "--site", "https://evil.example.com"},
			want:    "the credentials are for",
		},
		{name: "an identity without an organization", objects: s.identity(), args: []string{"--identity", "tenant"}, want: "set --org"},
		{name: "a nonexistent identity", args: []string{"--identity", "tenant"}, want: "getting identity tenant"},
		{name: "a nonexistent context", args: []string{"--identity", "tenant", "--context", "gone"}, want: "no such context"},
		{
			name: "no password",
			env:  map[string]string{"VCD_SITE": "https://x", "VCD_USERNAME": "u"},
			want: "credentials are missing",
		},
		{name: "an unknown output", args: []string{"-o", "xml"}, want: "table or json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.objects = tt.objects
			s.env = tt.env

			code := s.run(t, append([]string{"doctor"}, tt.args...)...)

			s.Expect(code).To(Equal(exitError))
			s.Expect(s.errors.String()).To(ContainSubstring(tt.want))
		})
	}
}

func TestTheProgramName(t *testing.T) {
	g := NewWithT(t)

	g.Expect(programName("/usr/local/bin/kubectl-vcd")).To(Equal("kubectl vcd"))
	g.Expect(programName("./vcdctl")).To(Equal("vcdctl"))
}
