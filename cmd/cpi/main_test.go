// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
)

const rightConfig = `
vcd: {host: https://vcd.example.com, org: acme, vdc: acme-vdc}
loadbalancer: {network: nodes, ports: {http: 80}}
`

// run runs the program with a configuration and the files of a Secret, and returns its output.
func run(t *testing.T, config string, secret map[string]string, args ...string) (string, error) {
	t.Helper()
	return runOf(t, providers(), config, secret, args...)
}

func runOf(
	t *testing.T, providers []provider, config string, secret map[string]string, args ...string,
) (string, error) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600)).To(Succeed())
	for name, content := range secret {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	command, err := newCommand(nil, &ourFlags{namespace: "kube-system"}, fromEnv, providers)
	g.Expect(err).NotTo(HaveOccurred())
	command.Flags().Lookup("version").Changed = false // shared by all programs of a process
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"--cloud-config=" + filepath.Join(dir, "config.yaml"), "--credentials=" + dir},
		args...))
	err = command.ExecuteContext(t.Context())
	return out.String(), err
}

// fromEnv returns an environment without settings for vSphere.
func fromEnv(name string) string {
	if strings.HasPrefix(name, "VSPHERE_") {
		return ""
	}
	return strings.ToLower(name)
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	command, err := newCommand(nil, &ourFlags{}, fromEnv, providers())
	g.Expect(err).NotTo(HaveOccurred())
	for name, want := range map[string]string{
		"cloud-provider":                  "vmware-cloud-director",
		"cloud-config":                    defaultConfig,
		"configure-cloud-routes":          "false",
		"concurrent-service-syncs":        "100",
		"authentication-skip-lookup":      "true",
		"leader-elect-resource-name":      "cloud-controller-manager",
		"leader-elect-resource-namespace": "kube-system",
		"allow-untagged-cloud":            "false",
		"vcd-task-poll":                   "750ms",
		"probe-address":                   ":10268",
		"webhook-secure-port":             "0",
	} {
		flag := command.Flags().Lookup(name)
		g.Expect(flag).NotTo(BeNil(), name)
		g.Expect([]string{flag.DefValue, flag.Value.String()}).To(Equal([]string{want, want}), name)
	}
}

func TestEventsReferToThePod(t *testing.T) {
	g := NewWithT(t)
	g.Expect(*(&ourFlags{namespace: "kube-system", podName: "ccm-1", podUID: "u"}).self()).To(And(HaveField("Kind",
		"Pod"), HaveField("Name", "ccm-1"), HaveField("UID", BeEquivalentTo("u"))))
	g.Expect(*(&ourFlags{namespace: "kube-system"}).self()).To(And(HaveField("Kind", "Deployment"),
		HaveField("Name", "vmware-cloud-director-ccm")), "older manifests do not set the name of the pod")
}

func TestTheAPIServerIsReachedDirectly(t *testing.T) {
	const variable = "KUBERNETES_SERVICE_HOST"
	for name, tt := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"in addition to the named keys": {map[string]string{"NO_PROXY": ".corp,10.0.0.0/8", variable: "10.96.0.1"}, ".corp,10.0.0.0/8,10.96.0.1"},
		"also by a lowercase variable":  {map[string]string{"no_proxy": ".corp", variable: "10.96.0.1"}, ".corp,10.96.0.1"},
		"alone":                         {map[string]string{variable: "fd00::1"}, "fd00::1"},
		"but not outside a pod":         {map[string]string{"NO_PROXY": ".corp"}, ".corp"},
	} {
		t.Run(name, func(t *testing.T) {
			got := withoutProxy(func(name string) string { return tt.environment[name] })

			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)

	out, err := run(t, "", nil, "--version")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("go1."))
}

func TestValidateConfig(t *testing.T) {
	password := map[string]string{"username": "ccm", "password": "canary"}
	tests := []struct {
		name   string
		config string
		secret map[string]string
		says   string
		wrong  []string
	}{
		{name: "a valid configuration, with a warning about old keys", config: rightConfig, secret: password, says: "warning: loadbalancer.ports.http"},
		{
			name:   "every problem is reported",
			config: "vcd: {host: vcd}\n",
			secret: password,
			wrong:  []string{"vcd.host", "vcd.org", "vcd.vdc", "loadbalancer.network"},
		},
		{name: "credentials are checked, too", config: rightConfig, wrong: []string{"neither a refreshToken nor a username"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			out, err := run(t, tt.config, tt.secret, "--validate-config", "--allow-untagged-cloud=true")

			g.Expect(out).To(ContainSubstring(tt.says))
			g.Expect(out).NotTo(ContainSubstring("canary"))
			if tt.wrong == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, wrong := range tt.wrong {
				g.Expect(err).To(MatchError(ContainSubstring(wrong)))
			}
		})
	}
}

func TestAnInvalidConfigurationExitsTheProgram(t *testing.T) {
	_, err := run(t, "vcd: {}\n", nil)

	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("vcd.host: is missing")))
}

func TestATooShortPollingIntervalIsRejected(t *testing.T) {
	_, err := run(t, rightConfig, nil, "--vcd-task-poll=1ms")

	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must be from 10ms to 1m")))
}

func TestAnUnknownProviderIsRejected(t *testing.T) {
	_, err := run(t, rightConfig, nil, "--cloud-provider=aws")

	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must be vmware-cloud-director")))
}

type answer struct{ err error }

func (a *answer) Snapshot(context.Context, time.Duration) ([]cpi.Machine, error) { return nil, a.err }

func (a *answer) Get(context.Context, string) (cpi.Machine, error) { return cpi.Machine{}, a.err }

func TestReadiness(t *testing.T) {
	g := NewWithT(t)
	cloud := &answer{errors.New("no answer")}
	ready := &readiness{machines: cloud}
	probe := func() int {
		to := httptest.NewRecorder()
		ready.ServeHTTP(to, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		g.Expect(to.Body.String()).NotTo(ContainSubstring("no answer"), "probes need no permissions")
		return to.Code
	}

	g.Expect(probe()).To(Equal(http.StatusOK), "without the lease it makes no calls")
	ready.Start(t.Context())
	g.Expect(probe()).To(Equal(http.StatusServiceUnavailable))
	cloud.err = nil
	g.Expect(probe()).To(Equal(http.StatusOK))
}

func TestAProcessWithoutItsRBACPermissionsIsNotReady(t *testing.T) {
	for _, leads := range []bool{false, true} {
		g := NewWithT(t)
		lacking := errors.New("a rule is missing")
		ready := &readiness{machines: &answer{}, rights: func(context.Context) error { return lacking }}
		if leads {
			ready.Start(t.Context())
		}
		to := httptest.NewRecorder()
		ready.ServeHTTP(to, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		g.Expect(to.Code).To(Equal(http.StatusServiceUnavailable))
		g.Expect(to.Body.String()).To(ContainSubstring("apply the manifest"))

		lacking = nil
		to = httptest.NewRecorder()
		ready.ServeHTTP(to, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		g.Expect(to.Code).To(Equal(http.StatusOK))
	}
}

func TestTheManifestsGrantAccessToRecords(t *testing.T) {
	for _, tt := range []struct {
		cloud         addons.Cloud
		loadBalancers bool
	}{
		{addons.VCD(), true},
		{addons.CloudStack(), true},
		{addons.VSphere(), false},
	} {
		t.Run(tt.cloud.Title, func(t *testing.T) {
			g := NewWithT(t)

			manifest, err := addons.StandAloneCCM("example.com/ccm:v1", tt.cloud).YAML()

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Contains(string(manifest), cpi.RecordsName)).To(Equal(tt.loadBalancers))
		})
	}
}
