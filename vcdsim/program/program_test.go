// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMain(m *testing.M) { testtime.Main(m) }

// run runs the program without an extension.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return runWith(ctx, args, stdout, stderr, Plain{})
}

// runFor runs the program until f returns.
func runFor(t *testing.T, args []string, f func(g *WithT, out *gbytes.Buffer)) {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := gbytes.NewBuffer()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append(args, "--listen", "127.0.0.1:0"), out, out) }()
	g.Eventually(out).Should(gbytes.Say(`# The web page at https://127.0.0.1:[1-9][0-9]*/_sim/ shows the activity.`))
	f(g, out)
	cancel()
	g.Eventually(ended).Should(Receive(BeNil()))
}

func TestTheProgramRunsUntilInterrupted(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	runFor(t, []string{"--ca-file", ca}, func(g *WithT, out *gbytes.Buffer) {
		g.Expect(os.ReadFile(ca)).To(HavePrefix("-----BEGIN CERTIFICATE-----"))
		text := string(out.Contents())
		g.Expect(text).To(MatchRegexp(`VCD_SITE=https://127.0.0.1:[1-9]`))
		for _, part := range []string{
			"VCD_API_TOKEN=capvcd-api-token",
			"VCD_CCM_API_TOKEN_B64=" + base64.StdEncoding.EncodeToString([]byte("ccm-api-token")),
			`provider "vcd" {`,
			"kind: VCDIdentity",
			"sysOrg: System",
			"export VCD_ORGANIZATION_VDC_NETWORK=nodes",
		} {
			g.Expect(text).To(ContainSubstring(part))
		}
	})
}

func TestTheStateIsPersistedToAFile(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	args := []string{"--state", state, "--ca-file", ca, "--preset", "k8s-tenant", "--cells", "2", "--clock", "manual"}
	runFor(t, args, func(g *WithT, out *gbytes.Buffer) {
		g.Expect(string(out.Contents())).To(MatchRegexp(`# cell 2: https://127.0.0.1:[1-9]`))
	})
	g := NewWithT(t)
	info, err := os.Stat(state)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "it holds passwords")
	first, err := os.ReadFile(state)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(state, bytes.Replace(first, []byte("capvcd-api-token"), []byte("another-token"), 1),
		0o600)).To(Succeed())

	runFor(t, append(args, "--preset", "minimal"), func(g *WithT, out *gbytes.Buffer) {
		g.Expect(string(out.Contents())).To(ContainSubstring("VCD_API_TOKEN=another-token"), "the file, not the preset")
	})
	g.Expect(os.WriteFile(state, []byte("{}"), 0o600)).To(Succeed())
	var out bytes.Buffer
	g.Expect(run(t.Context(), args, &out, &out)).To(MatchError(ContainSubstring("it is not a dump of vcdsim")))
	args[1] = filepath.Join(filepath.Dir(state), "missing", "state.json")
	g.Expect(run(t.Context(), args, &out,
		&out)).To(MatchError(ContainSubstring("writing the state on exit")))
}

func TestPrint(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	show := func(g *WithT, args ...string) string {
		var out bytes.Buffer
		g.Expect(run(t.Context(), append(args, "--ca-file", ca), &out, &out)).To(Succeed())
		return out.String()
	}
	for _, preset := range vcdsim.PresetNames() {
		t.Run(preset, func(t *testing.T) {
			g := NewWithT(t)
			for _, name := range configNames() {
				text := show(g, "--preset", preset, "--print", name)
				g.Expect(text).To(ContainSubstring("https://127.0.0.1:8443"), name)
				g.Expect(text).NotTo(ContainSubstring("<no value>"), name)
			}
			file := filepath.Join(t.TempDir(), "site.yaml")
			g.Expect(os.WriteFile(file, []byte(show(g, "--preset", preset, "--print", "model")), 0o600)).To(Succeed())
			g.Expect(show(g, "--model", file, "--print", "env")).To(Equal(show(g, "--preset", preset, "--print", "env")))
			var config struct {
				Provider struct{ URL, User, SysOrg string }
				VCD      struct{ Org, VDC string }
			}
			g.Expect(yaml.UnmarshalStrict([]byte(show(g, "--preset", preset, "--print", "govcd")),
				&map[string]any{})).To(Succeed())
			g.Expect(yaml.Unmarshal([]byte(show(g, "--preset", preset, "--print", "govcd")), &config)).To(Succeed())
			g.Expect(config.VCD.Org).To(Equal("acme"))
			g.Expect(config.Provider.SysOrg).To(Equal("System"))
			u, err := url.Parse(config.Provider.URL)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(u.Path).To(Equal("/api"))
			driver := strings.Split(show(g, "--preset", preset, "--print", "csi"), "\n---\n")
			g.Expect(driver).To(HaveLen(3))
			g.Expect(yaml.UnmarshalStrict([]byte(driver[0]), &corev1.Secret{})).To(Succeed())
			g.Expect(yaml.UnmarshalStrict([]byte(driver[1]), &corev1.ConfigMap{})).To(Succeed())
			g.Expect(yaml.UnmarshalStrict([]byte(driver[2]), &storagev1.StorageClass{})).To(Succeed())
			secretYAML, identity, _ := strings.Cut(show(g, "--preset", preset, "--print", "identity"), "\n---\n")
			g.Expect(yaml.UnmarshalStrict([]byte(identity), &infrav1.VCDIdentity{})).To(Succeed())
			var secret corev1.Secret
			g.Expect(yaml.UnmarshalStrict([]byte(secretYAML), &secret)).To(Succeed())
			g.Expect(os.ReadFile(ca)).To(WithTransform(func(b []byte) string { return strings.TrimSpace(string(b)) },
				Equal(strings.TrimSpace(secret.StringData["ca.crt"]))))
		})
	}
}

func TestBadFlags(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		args          []string
	}{
		{
			name:    "an unknown preset",
			message: `preset "huge" is not one of cloud-provider, full-clones, ip-spaces, k8s-tenant, large, minimal, two-gateways, vdc-group, zones`,
			args:    []string{"--preset", "huge"},
		},
		{name: "a preset and a model", message: "--model and --preset are mutually exclusive", args: []string{"--preset", "zones", "--model", "x"}},
		{name: "a nonexistent model", message: "reading the model: open nowhere.yaml", args: []string{"--model", "nowhere.yaml"}},
		{name: "an unknown profile", message: `profile "warp" is not one of`, args: []string{"--profile", "warp"}},
		{name: "an unknown version", message: `API version "1.0" is not one of`, args: []string{"--api-version", "1.0"}},
		{name: "an unknown flag", message: "unknown flag: --presett; see --help", args: []string{"--presett", "large"}},
		{name: "half a certificate", message: "--tls-cert and --tls-key must be set together", args: []string{"--tls-key", "x"}},
		{name: "no certificate", message: "reading --tls-cert and --tls-key", args: []string{"--tls-key", "x", "--tls-cert", "y"}},
		{name: "an argument", message: `unexpected argument "x"`, args: []string{"x"}},
		{
			name:    "an invalid clock",
			message: `clock "cuckoo" is not real, manual, a time or a number`,
			args:    []string{"--clock", "cuckoo"},
		},
		{
			name:    "an invalid configuration",
			message: `--print "xml" is not one of capi, csi, env, govcd, identity, terraform, model, assumptions`,
			args:    []string{"--print", "xml"},
		},
		{name: "an invalid address", message: "listening on", args: []string{"--listen", "256.0.0.1:1"}},
		{name: "an invalid public address", message: "is not a URL", args: []string{"--public-url", "x"}},
		{
			name:    "two problems at once",
			message: "profile \"warp\" is not one of instant, fast, recorded\nclock",
			args:    []string{"--profile", "warp", "--clock", "0"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			args := append([]string{"--ca-file", filepath.Join(t.TempDir(), "ca.pem")}, tc.args...)
			g.Expect(run(t.Context(), args, &out, &out)).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(out.String()).To(BeEmpty(), "the error contains it, in one line")
		})
	}
}

func TestAClockStoppedAtATime(t *testing.T) {
	args := []string{"--ca-file", filepath.Join(t.TempDir(), "ca.pem"), "--clock", "2026-03-01T12:00:00Z"}
	o, err := parse(args, &bytes.Buffer{}, Plain{})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	clock, err := o.newClock()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clock.Now()).To(BeTemporally("==", time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)))
	g.Expect(clock.Ticks()).To(BeFalse())
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--version"}, &out, &out)).To(Succeed())
	g.Expect(out.String()).To(HavePrefix(version.Long()))
}

func TestHelp(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--help"}, &out, &out)).To(MatchError(pflag.ErrHelp))
	g.Expect(out.String()).To(ContainSubstring("Examples:"))
	g.Expect(out.String()).To(ContainSubstring("--control-token"))
}

func TestAssumptionsComeFromTheFile(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "site.yaml")
	g.Expect(os.WriteFile(file, []byte("release: 10.6.0.24056521\nassumptions: {SharedVIPStays: true}\n"), 0o600)).To(Succeed())
	var out bytes.Buffer
	g.Expect(run(t.Context(), []string{"--assumptions", file, "--print", "assumptions"}, &out, &out)).To(Succeed())
	g.Expect(out.String()).To(And(ContainSubstring("SharedVIPStays: true"), ContainSubstring("MaxNetworkName: 128")))

	g.Expect(os.WriteFile(file, []byte("assumptions: {Other: true}\n"), 0o600)).To(Succeed())
	g.Expect(run(t.Context(), []string{"--assumptions", file}, &out, &out)).To(MatchError(ContainSubstring(`unknown assumption "Other"`)))
	g.Expect(run(t.Context(), []string{
		"--assumptions",
		file + "x",
	}, &out, &out)).To(MatchError(ContainSubstring("reading the assumptions")))
}
